<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

/**
 * A database server of one test's own, for settings that cannot be changed while a server runs.
 */
final class PrivateServer
{
    public readonly \PDO $pdo;
    public readonly int $port;
    /** @var resource */
    private mixed $process;
    /** @var array<int, resource> the server ends with its script's standard input */
    private array $pipes = [];

    public function __construct(string ...$options)
    {
        $this->process = proc_open(
            [dirname(__DIR__, 3) . '/bin/private-server', '--', ...$options],
            [['pipe', 'r'], ['pipe', 'w'], STDERR],
            $this->pipes,
        );
        $values = [];
        while (($line = fgets($this->pipes[1])) !== false && trim($line) !== 'ready') {
            [$name, $value] = explode('=', trim($line), 2) + [1 => ''];
            $values[$name] = trim($value, '"\'');
        }
        if (!isset($values['port'], $values['socket'])) {
            $this->stop();
            throw new \RuntimeException('The private server did not start.');
        }
        $this->port = (int)$values['port'];
        $this->pdo = new \PDO('mysql:unix_socket=' . $values['socket'], $values['user'], $values['password'], [
            \PDO::ATTR_ERRMODE => \PDO::ERRMODE_EXCEPTION, \PDO::ATTR_DEFAULT_FETCH_MODE => \PDO::FETCH_ASSOC,
        ]);
    }

    public function stop(): void
    {
        fclose($this->pipes[0]);
        proc_close($this->process);
    }
}
