<?php

declare(strict_types=1);

// Relays connections to the server, one at a time, and prints for each how often the server had to
// answer before the client went on: its round trips, the handshake's included.
//   php cold_proxy.php LISTEN SERVER      both are paths of unix sockets

[, $listen, $server] = $argv;
$listener = stream_socket_server("unix://$listen");
echo "ready\n";
while ($client = @stream_socket_accept($listener, -1)) {
    $upstream = stream_socket_client("unix://$server");
    [$trips, $asked] = [0, false];
    for ($open = true; $open;) {
        $readable = [$client, $upstream];
        $none = null;
        stream_select($readable, $none, $none, null);
        foreach ($readable as $from) {
            $bytes = (string) fread($from, 65_536);
            if ($bytes === '') {
                $open = false;
                break;
            }
            if ($from === $client) {
                $asked = true;
            } elseif ($asked) {
                $trips++;
                $asked = false;
            }
            fwrite($from === $client ? $upstream : $client, $bytes);
        }
    }
    fclose($client);
    fclose($upstream);
    echo "$trips\n";
}
