<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Repository;

/**
 * Owner names that two processes can never share.
 *
 * nr_llm's `segment:host:pid` is the same in every container whose host name and pid are (pid 1),
 * and where a long host name pushes the pid past 64 bytes. The name that is stored carries a nonce
 * of the process; where it gets too long, the host is shortened, not the tail.
 */
final class Identity
{
    public const MAX_BYTES = 64;

    public static function extend(string $identity, string $nonce): string
    {
        if (str_ends_with($identity, ':' . $nonce)) {
            return $identity;
        }
        $full = $identity . ':' . $nonce;
        if (strlen($full) <= self::MAX_BYTES) {
            return $full;
        }
        $tail = ':' . $nonce;
        $head = $identity;
        $parts = explode(':', $identity);
        // segment:host…:pid. Without a number at the end the name was cut already, and its end is
        // the host's.
        if (count($parts) >= 3 && ctype_digit($parts[count($parts) - 1])) {
            $tail = ':' . array_pop($parts) . $tail;
            $head = implode(':', $parts);
        }

        return mb_strcut($head, 0, max(1, self::MAX_BYTES - strlen($tail)), 'UTF-8') . $tail;
    }
}
