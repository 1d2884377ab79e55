<?php

declare(strict_types=1);

// A TCP proxy that injects faults: php proxy.php LISTEN-PORT SERVER-PORT, and lines on its standard
// input:
//   cut          end every connection now
//   slow MS      each piece of data waits so long, in both directions (0: no more)
//   hold         forward and accept nothing until `go`
//   deaf         forward requests, but no replies, until `go`, which then cuts the connections
//   stall BYTES  forward so many bytes of the replies on each connection, and no more, until `go`
//   go
$listener = stream_socket_server("tcp://127.0.0.1:{$argv[1]}", $code, $message) ?: throw new RuntimeException($message);
stream_set_blocking(STDIN, false);
$links = []; // each: client, server, and the pieces on their way as [due, from, bytes]
$mode = 'go';
$stall = 0;
$passed = []; // by connection: the bytes of replies that it passed since `stall`
$delay = 0.0;
$input = '';
echo "ready\n";

$end = function (int $id) use (&$links): void {
    foreach (['client', 'server'] as $side) {
        is_resource($links[$id][$side]) && fclose($links[$id][$side]);
    }
    unset($links[$id]);
};
while (true) {
    $read = [STDIN];
    if ($mode !== 'hold') {
        $read[] = $listener;
        foreach ($links as $link) {
            array_push($read, $link['client'], $link['server']);
        }
    }
    $write = $except = null;
    $waiting = array_filter($links, fn(array $link): bool => $link['pieces'] !== []);
    if (@stream_select($read, $write, $except, $waiting === [] ? 5 : 0, $waiting === [] ? 0 : 2000) === false) {
        continue;
    }
    foreach ($read as $stream) {
        if ($stream === STDIN) {
            $bytes = fread(STDIN, 4096);
            if ($bytes === '' || $bytes === false) {
                if (feof(STDIN)) {
                    exit(0);
                }
                continue;
            }
            $input .= $bytes;
            while (($end_of_line = strpos($input, "\n")) !== false) {
                $words = explode(' ', substr($input, 0, $end_of_line));
                $input = substr($input, $end_of_line + 1);
                if ($words[0] === 'cut' || ($words[0] === 'go' && in_array($mode, ['deaf', 'stall'], true))) {
                    array_map($end, array_keys($links));
                }
                if ($words[0] === 'slow') {
                    $delay = (int) $words[1] / 1000;
                } elseif ($words[0] === 'stall') {
                    [$mode, $stall, $passed] = ['stall', (int) $words[1], []];
                } elseif ($words[0] !== 'cut') {
                    $mode = $words[0];
                }
            }
            continue;
        }
        if ($stream === $listener) {
            $client = @stream_socket_accept($listener, 0);
            if ($client !== false) {
                $server = @stream_socket_client("tcp://127.0.0.1:{$argv[2]}", $code, $message, 1);
                if ($server === false) {
                    fclose($client);
                } else {
                    stream_set_blocking($client, false);
                    stream_set_blocking($server, false);
                    $links[(int) $client] = ['client' => $client, 'server' => $server, 'pieces' => []];
                }
            }
            continue;
        }
        foreach ($links as $id => $link) {
            if ($stream === $link['client'] || $stream === $link['server']) {
                $bytes = is_resource($stream) ? @fread($stream, 65536) : false;
                if ($bytes === false || ($bytes === '' && feof($stream))) {
                    $end($id);
                } elseif ($bytes !== '') {
                    $links[$id]['pieces'][] = [microtime(true) + $delay, $stream === $link['client'] ? 'server' : 'client', $bytes];
                }
                break;
            }
        }
    }
    foreach ($links as $id => $link) {
        foreach ($link['pieces'] as $index => [$due, $to, $bytes]) {
            if ($mode === 'hold' || $due > microtime(true)) {
                break;
            }
            unset($links[$id]['pieces'][$index]);
            if ($mode === 'deaf' && $to === 'client') {
                continue;
            }
            if ($mode === 'stall' && $to === 'client') {
                $bytes = substr($bytes, 0, max(0, $stall - ($passed[$id] ?? 0)));
                $passed[$id] = ($passed[$id] ?? 0) + strlen($bytes);
            }
            for ($left = $bytes; $left !== '';) {
                $written = @fwrite($link[$to], $left);
                if ($written === false) {
                    $end($id);
                    continue 3;
                }
                $left = substr($left, $written);
            }
        }
    }
}
