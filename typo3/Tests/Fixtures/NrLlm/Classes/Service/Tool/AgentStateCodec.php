<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Service\Tool;

use Netresearch\NrLlm\Service\Tool\Exception\AgentStateDecryptionException;

/**
 * Stands in for nr_llm's codec: sealed payloads carry a mark, a seal over identifier and key, and
 * the text.
 */
final class AgentStateCodec
{
    private const KEY = 'the key that is there';

    public static function seal(string $text, string $identifier, string $key = self::KEY): string
    {
        return 'nrv1:' . hash_hmac('sha256', $identifier . $text, $key) . ':' . base64_encode($text);
    }

    public function decode(string $stored, string $identifier): string
    {
        if (!str_starts_with($stored, 'nrv1:') && !str_starts_with($stored, 'v2:')) {
            return $stored;
        }
        $parts = explode(':', $stored);
        if (count($parts) !== 3 || strlen($parts[1]) !== 64) {
            throw new AgentStateDecryptionException('The payload of "secret customer" is malformed.', 1785200002);
        }
        $text = (string)base64_decode($parts[2], true);
        if (!hash_equals(hash_hmac('sha256', $identifier . $text, self::KEY), $parts[1])) {
            throw new AgentStateDecryptionException('The payload of "secret customer" does not authenticate.', 1785200001);
        }

        return $text;
    }
}
