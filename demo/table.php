<?php

declare(strict_types=1);

/**
 * Prints rows as a table: one line per row, columns as wide as their widest cell.
 *
 * @param list<string>       $head
 * @param list<list<string>> $rows
 */
function print_table(array $head, array $rows): void
{
    $widths = array_map('strlen', $head);
    foreach ($rows as $row) {
        foreach ($row as $i => $cell) {
            $widths[$i] = max($widths[$i], strlen($cell));
        }
    }
    $line = static fn(array $cells): string => rtrim('  ' . implode('  ', array_map(
        static fn(string $cell, int $width): string => str_pad($cell, $width),
        $cells,
        $widths,
    ))) . "\n";
    echo $line($head), $line(array_map(static fn(int $width): string => str_repeat('-', $width), $widths)), implode(array_map($line, $rows)), "\n";
}

/** Returns a lease in words: `9 min 58 s left`, `expired 40 s ago`, `none`. */
function lease_in_words(int $leaseExpires, int $now): string
{
    if ($leaseExpires === 0) {
        return 'none';
    }
    $seconds = abs($leaseExpires - $now);
    $words = $seconds >= 60 ? intdiv($seconds, 60) . ' min' . ($seconds % 60 === 0 ? '' : ' ' . $seconds % 60 . ' s') : $seconds . ' s';

    return $leaseExpires < $now ? "expired $words ago" : "$words left";
}
