<?php

declare(strict_types=1);

// The libraries, and nr_llm's message. Debian's packages bring an autoload file each, found over
// the include path; elsewhere Composer's is named in NRLLM_VENDOR_AUTOLOAD.

namespace {
    error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
    if (($composer = getenv('NRLLM_VENDOR_AUTOLOAD')) !== false) {
        require_once $composer;
    } else {
        foreach (['Doctrine/DBAL', 'Symfony/Component/Messenger', 'Symfony/Component/Messenger/Bridge/Doctrine'] as $library) {
            if (stream_resolve_include_path("$library/autoload.php") !== false) {
                require_once "$library/autoload.php";
            }
        }
        // Not every release of the bridge's package brings an autoload file.
        spl_autoload_register(static function (string $class): void {
            if (str_starts_with($class, 'Symfony\Component\Messenger\Bridge\Doctrine\\')) {
                $file = stream_resolve_include_path(strtr($class, '\\', '/') . '.php');
                if ($file !== false) {
                    require $file;
                }
            }
        });
    }
    require_once dirname(__DIR__, 3) . '/phpt/inc/provider.inc';
}

namespace Netresearch\NrLlm\Service\Agent\Queue {
    /** The message as nr_llm has it. */
    final class AgentRunQueuedMessage
    {
        public function __construct(public readonly string $runUuid)
        {
        }
    }
}
