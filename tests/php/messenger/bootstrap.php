<?php

declare(strict_types=1);

require_once __DIR__ . '/vendor.php';
require_once dirname(__DIR__, 3) . '/phpt/inc/db.inc';
require_once __DIR__ . '/MessengerTestCase.php';
