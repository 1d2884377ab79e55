<?php

declare(strict_types=1);

/** One request to an FPM pool, in the protocol's own records. */
final class FastCgi
{
    /** @var resource */
    private $stream;
    private string $unread = '';

    public function __construct(string $socket, string $script, array $query)
    {
        $this->stream = stream_socket_client("unix://$socket", $code, $message, 5);
        $parameters = [
            'GATEWAY_INTERFACE' => 'CGI/1.1', 'REQUEST_METHOD' => 'GET', 'SCRIPT_FILENAME' => $script, 'SCRIPT_NAME' => '/' . basename($script),
            'QUERY_STRING' => http_build_query($query), 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'SERVER_SOFTWARE' => 'test',
        ];
        $body = '';
        foreach ($parameters as $name => $value) {
            $body .= self::length($name) . self::length($value) . $name . $value;
        }
        // Begin (as a responder), parameters, their end, the end of the input.
        fwrite($this->stream, self::record(1, "\0\1\0\0\0\0\0\0") . self::record(4, $body) . self::record(4, '') . self::record(5, ''));
        // After its response a worker reads until the client has closed its side.
        stream_socket_shutdown($this->stream, STREAM_SHUT_WR);
    }

    private static function length(string $text): string
    {
        return strlen($text) < 128 ? chr(strlen($text)) : pack('N', strlen($text) | 0x80000000);
    }

    private static function record(int $type, string $content): string
    {
        return pack('CCnnCC', 1, $type, 1, strlen($content), 0, 0) . $content;
    }

    /**
     * Yields the lines of the response as they arrive; ends when the request has ended, its
     * shutdown included. Null in the place of an end.
     */
    public function lines(): Generator
    {
        $text = '';
        $in_body = false;
        while (true) {
            $head = $this->read(8);
            if ($head === null) {
                yield null;
                return;
            }
            ['type' => $type, 'length' => $length, 'padding' => $padding] = unpack('Cversion/Ctype/nid/nlength/Cpadding', $head);
            $content = $this->read($length + $padding);
            if ($type === 3) {
                return;
            }
            if ($type === 6) {
                $text .= substr((string) $content, 0, $length);
                if (!$in_body && ($at = strpos($text, "\r\n\r\n")) !== false) {
                    $in_body = true;
                    $text = substr($text, $at + 4);
                }
                while ($in_body && ($at = strpos($text, "\n")) !== false) {
                    yield substr($text, 0, $at);
                    $text = substr($text, $at + 1);
                }
            }
        }
    }

    private function read(int $length): ?string
    {
        stream_set_timeout($this->stream, 20);
        while (strlen($this->unread) < $length) {
            $more = fread($this->stream, 65536);
            if ($more === false || $more === '') {
                return null;
            }
            $this->unread .= $more;
        }
        $part = substr($this->unread, 0, $length);
        $this->unread = substr($this->unread, $length);

        return $part;
    }
}
