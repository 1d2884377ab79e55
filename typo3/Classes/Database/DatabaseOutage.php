<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Database;

use Doctrine\DBAL\Exception\ConnectionException;
use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use Psr\Log\LoggerInterface;

/**
 * A database that a resident command cannot reach. The command waits as long as it takes; the
 * outage is reported once when it begins and once when it is over.
 */
final class DatabaseOutage
{
    /** The server answered and refused the account or the database: waiting does not help. */
    private const REFUSALS = [1044, 1045, 1046, 1049, 1095, 1142, 1143, 1227, 1370, 1429, 1698];
    /** Too many connections, a shutdown, a killed connection. */
    private const PASSING = [1040, 1047, 1053, 1203, 1226, 1290, 1836, 1927, 2002, 2003, 2006, 2013, 4031];
    private const LONGEST_PAUSE_SECONDS = 5.0;

    private ?float $since = null;
    private float $pause = 0.0;

    public function __construct(
        private readonly string $command,
        private readonly ConsoleMessages $messages,
        private readonly LoggerInterface $logger,
    ) {}

    /**
     * Returns whether an error means that the database cannot be reached for now.
     */
    public static function is(\Throwable $error): bool
    {
        $code = (int)$error->getCode();
        $connection = $error instanceof \NrLlmConnectionException || $error instanceof ConnectionException
            || ($error instanceof \Doctrine\DBAL\Exception && in_array($code, self::PASSING, true));

        return $connection && !in_array($code, self::REFUSALS, true);
    }

    public function isOn(): bool
    {
        return $this->since !== null;
    }

    /**
     * Reports an outage that begins, and returns how long to wait before the next attempt.
     */
    public function pause(\Throwable $error): float
    {
        if ($this->since === null) {
            $this->since = hrtime(true) / 1e9;
            $this->pause = 0.25;
            $this->logger->error('{command}: the database cannot be reached, waiting for it: {reason}', [
                'command' => $this->command, 'reason' => $error->getMessage(), 'exception' => $error,
            ]);
            $this->messages->failure(sprintf('The database cannot be reached; %s waits for it. %s', $this->command, $error->getMessage()));
        }
        $this->pause = min($this->pause * 2, self::LONGEST_PAUSE_SECONDS);

        return $this->pause;
    }

    /**
     * Reports that an outage is over, where there was one.
     */
    public function over(): void
    {
        if ($this->since === null) {
            return;
        }
        $seconds = hrtime(true) / 1e9 - $this->since;
        $this->since = null;
        $this->logger->notice('{command}: the database answers again after {seconds} s', [
            'command' => $this->command, 'seconds' => round($seconds, 1),
        ]);
        $this->messages->failureOver(sprintf('The database answers again after %.1f s.', $seconds));
    }
}
