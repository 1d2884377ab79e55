<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool\Exception;

/**
 * Stands in for nr_llm's exception: code 1785200001 key or authentication, 1785200002 malformed.
 */
final class AgentStateDecryptionException extends \RuntimeException {}
