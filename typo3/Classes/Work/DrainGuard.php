<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Work;

use NrLlmRuntime\Typo3\Console\ConsoleMessages;
use NrLlmRuntime\Typo3\Console\StopSignals;
use NrLlmRuntime\Typo3\Event\AgentRunRequeuedEvent;
use NrLlmRuntime\Typo3\Event\Events;
use NrLlmRuntime\Typo3\Repository\LeaseKeeper;
use NrLlmRuntime\Typo3\Runtime\RuntimeLocator;
use NrLlmRuntime\Typo3\WakeUp\WakeUps;
use Psr\Log\LoggerInterface;

/**
 * A worker that must stop within a time (a deploy) gives the run under way back to the queue (P
 * 37).
 *
 * PHP runs no signal handler while it is inside a provider call, so the worker cannot do that
 * itself. It is split in two before it opens a connection: the child works and reports to the
 * parent which run it executes; the parent waits. After the time the parent ends the child and
 * hands the run back over a connection of its own. Where the write fence forbids another attempt
 * the run is left to the reaper.
 */
final class DrainGuard
{
    private ?int $parent = null;

    public function __construct(
        private readonly RuntimeLocator $locator,
        private readonly LeaseKeeper $keeper,
        private readonly WakeUps $wakeUps,
        private readonly Events $events,
        private readonly LoggerInterface $logger,
    ) {}

    public static function isSupported(): bool
    {
        return StopSignals::areSupported() && function_exists('pcntl_fork') && function_exists('posix_kill');
    }

    /**
     * Splits the process.
     *
     * @return int|null null: in the child, which has to work; otherwise the exit code of the
     *     command, in the parent
     * @throws \RuntimeException where no process can be made
     */
    public function split(int $seconds, ConsoleMessages $messages): ?int
    {
        $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, STREAM_IPPROTO_IP);
        $parent = (int)getmypid();
        $pid = $pair === false ? -1 : pcntl_fork();
        if ($pair === false || $pid === -1) {
            throw new \RuntimeException('The worker cannot be split into two processes, which --drain needs.');
        }
        if ($pid === 0) {
            fclose($pair[0]);
            $this->parent = $parent;
            $this->keeper->observe(static function (int $runUid, ?string $owner) use ($pair): void {
                // One short line: it is written whole, or not at all.
                @fwrite($pair[1], json_encode([$runUid, $owner]) . "\n");
            });

            return null;
        }
        fclose($pair[1]);

        return $this->guard($pid, $pair[0], $seconds, $messages);
    }

    /**
     * Returns whether the parent is gone, so that nothing would hand the run of this child back.
     */
    public function isAbandoned(): bool
    {
        return $this->parent !== null && posix_getppid() !== $this->parent;
    }

    /**
     * @param resource $socket
     */
    private function guard(int $pid, $socket, int $seconds, ConsoleMessages $messages): int
    {
        stream_set_blocking($socket, false);
        $signals = new StopSignals();
        $signals->listen();
        $runs = [];
        $rest = '';
        $deadline = null;
        try {
            while (pcntl_waitpid($pid, $status, WNOHANG) === 0) {
                $this->read($socket, $runs, $rest);
                if ($signals->isReceived() && $deadline === null) {
                    posix_kill($pid, SIGTERM);
                    $deadline = microtime(true) + $seconds;
                }
                if ($deadline !== null && microtime(true) >= $deadline) {
                    posix_kill($pid, SIGKILL);
                    pcntl_waitpid($pid, $status);
                    $this->read($socket, $runs, $rest);

                    return $this->handBack($runs, $messages);
                }
                usleep(100000);
            }
        } finally {
            $signals->restore();
            fclose($socket);
        }
        if (pcntl_wifexited($status)) {
            return (int)pcntl_wexitstatus($status);
        }
        $messages->failure(sprintf('The worker was ended by signal %d; the reaper takes its run over.', pcntl_wtermsig($status)));

        return 1;
    }

    /**
     * @param resource           $socket
     * @param array<int, string> $runs run uid => owner, of the runs under way
     */
    private function read($socket, array &$runs, string &$rest): void
    {
        while (($data = fread($socket, 8192)) !== false && $data !== '') {
            $lines = explode("\n", $rest . $data);
            $rest = array_pop($lines);
            foreach ($lines as $line) {
                [$runUid, $owner] = json_decode($line, true);
                if ($owner === null) {
                    unset($runs[(int)$runUid]);
                } else {
                    $runs[(int)$runUid] = (string)$owner;
                }
            }
        }
    }

    /**
     * @param array<int, string> $runs
     */
    private function handBack(array $runs, ConsoleMessages $messages): int
    {
        $code = 0;
        foreach ($runs as $runUid => $owner) {
            try {
                $template = $this->wakeUps->template();
                $done = $this->locator->runtime()->handBack($runUid, $owner, $template);
            } catch (\Throwable $error) {
                $this->logger->error(
                    'Agent run {run} could not be handed back, the reaper takes it over: {reason}',
                    ['run' => $runUid, 'owner' => $owner, 'reason' => $error->getMessage(), 'exception' => $error],
                );
                $messages->failure(sprintf('Run %d could not be handed back, the reaper takes it over: %s', $runUid, $error->getMessage()));
                $code = 1;
                continue;
            }
            $this->logger->notice($done ? 'Agent run {run} was handed back to the queue' : 'Agent run {run} was not handed back: it has '
                . 'ended, or its write fence forbids another attempt; the reaper takes it over', ['run' => $runUid, 'owner' => $owner]);
            $messages->note(sprintf($done ? 'Run %d was handed back to the queue.'
                : 'Run %d was not handed back (it has ended, or may not be repeated); the reaper takes it over.', $runUid));
            if ($done) {
                $this->events->dispatch(new AgentRunRequeuedEvent($runUid, '', AgentRunRequeuedEvent::HANDED_BACK));
            }
        }

        return $code;
    }
}
