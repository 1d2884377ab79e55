<?php

declare(strict_types=1);

/** A PHP-FPM of the test's own, with one worker by default; it ends with this object. */
final class Fpm
{
    private readonly string $folder;
    private readonly mixed $process;
    private readonly string $socket;

    /** @param list<string> $arguments of the PHP binary, `-d` and what goes with it */
    public function __construct(string $temporary, array $arguments, int $workers = 1)
    {
        $this->folder = $temporary . '/fpm-' . bin2hex(random_bytes(4));
        mkdir($this->folder);
        $this->socket = "$this->folder/fpm.sock";
        $binary = null;
        foreach (explode(':', getenv('PATH') . ':/usr/sbin:/usr/local/sbin') as $directory) {
            foreach (['php-fpm' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION, 'php-fpm'] as $name) {
                $binary ??= is_executable("$directory/$name") ? "$directory/$name" : null;
            }
        }
        if ($binary === null) {
            throw new LogicException('there is no php-fpm on this machine: run bin/setup');
        }
        $user = posix_geteuid() === 0 ? "user = root\ngroup = root\n" : '';
        file_put_contents("$this->folder/fpm.conf", "[global]\nerror_log = $this->folder/log\ndaemonize = no\n[www]\n{$user}listen = $this->socket\npm = static\npm.max_children = $workers\n"
            . "clear_env = no\ncatch_workers_output = yes\n");
        $root = posix_geteuid() === 0 ? ['-R'] : [];
        $this->process = proc_open([$binary, '-n', '-F', ...$root, '-y', "$this->folder/fpm.conf", ...$arguments], [['file', '/dev/null', 'r'], ['file', "$this->folder/out", 'w'], ['redirect', 1]], $pipes);
        // The socket exists before it accepts connections.
        for ($i = 0; $i < 2000; $i++) {
            $probe = @stream_socket_client("unix://$this->socket");
            if ($probe !== false) {
                fclose($probe);

                return;
            }
            if (!proc_get_status($this->process)['running']) {
                break;
            }
            usleep(10000);
        }
        throw new RuntimeException('php-fpm did not start: ' . @file_get_contents("$this->folder/log") . file_get_contents("$this->folder/out"));
    }

    /**
     * Runs a script and returns its whole response: headers, an empty line, the body, and then the
     * output of the error stream.
     */
    public function request(string $script): string
    {
        $connection = stream_socket_client("unix://$this->socket");
        $pair = static fn (string $name, string $value): string => pack('NN', strlen($name) | 0x80000000, strlen($value) | 0x80000000) . $name . $value;
        $parameters = '';
        foreach (['SCRIPT_FILENAME' => $script, 'REQUEST_METHOD' => 'GET', 'GATEWAY_INTERFACE' => 'CGI/1.1', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'QUERY_STRING' => ''] as $name => $value) {
            $parameters .= $pair($name, $value);
        }
        $record = static fn (int $type, string $content): string => pack('CCnnCx', 1, $type, 1, strlen($content), 0) . $content;
        fwrite($connection, $record(1, pack('nCx5', 1, 0)) . $record(4, $parameters) . $record(4, '') . $record(5, ''));
        $answer = stream_get_contents($connection);
        $out = $errors = '';
        for ($at = 0; $at + 8 <= strlen($answer); $at += 8 + $header['length'] + $header['padding']) {
            $header = unpack('Cversion/Ctype/nid/nlength/Cpadding', $answer, $at);
            $content = substr($answer, $at + 8, $header['length']);
            match ($header['type']) {
                6 => $out .= $content,
                7 => $errors .= $content,
                default => null,
            };
        }

        return $out . $errors;
    }

    public function __destruct()
    {
        proc_terminate($this->process, SIGTERM);
        proc_close($this->process);
    }
}
