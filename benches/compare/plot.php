<?php

declare(strict_types=1);

namespace Bench;

/**
 * Colours of the variants, the same in every plot; distinguishable with colour blindness, and
 * labelled.
 */
const COLOURS = ['doctrine' => '#c0504d', 'plain' => '#e0a030', 'module' => '#2f6db3', 'ffi' => '#7fb2e5', 'limit' => '#7a7a7a'];

/** Formats a number in three digits, with its unit. */
function amount(float $value, string $unit): string
{
    if ($unit === 'µs' && $value >= 1_000) {
        [$value, $unit] = $value >= 1_000_000 ? [$value / 1_000_000, 's'] : [$value / 1_000, 'ms'];
    } elseif ($unit === 'KiB' && $value >= 1_024) {
        [$value, $unit] = $value >= 1_048_576 ? [$value / 1_048_576, 'GiB'] : [$value / 1_024, 'MiB'];
    } elseif ($unit === 'B' && $value >= 1_024) {
        [$value, $unit] = $value >= 1_048_576 ? [$value / 1_048_576, 'MiB'] : [$value / 1_024, 'KiB'];
    }
    $digits = match (true) {
        $value >= 100, $value == floor($value) => 0,
        $value >= 10 => 1,
        default => 2,
    };

    return number_format($value, $digits, '.', ' ') . ($unit === '' ? '' : " $unit");
}

/**
 * Draws horizontal bars in groups on a logarithmic scale, as SVG.
 *
 * @param array<string, array<string, float>> $groups group => variant => value
 * @param array<string, string> $names variant => label
 */
function bars(string $title, string $subtitle, string $unit, array $groups, array $names): string
{
    $values = array_filter(array_merge(...array_map('array_values', array_values($groups))), static fn (float $value): bool => $value > 0);
    $low = 10 ** floor(log10(min($values) * 0.7));
    $high = max($values);
    [$left, $width, $bar, $gap, $top] = [150, 520, 16, 18, 64];
    $x = static fn (float $value): float => $left + ($value <= $low ? 0 : $width * log10($value / $low) / log10($high / $low));
    $body = '';
    $y = $top;
    foreach ($groups as $group => $bars) {
        $middle = $y + count($bars) * $bar / 2 + 4;
        $body .= sprintf('<text x="%d" y="%.1f" text-anchor="end" class="group">%s</text>' . "\n", $left - 10, $middle, htmlspecialchars($group));
        foreach ($bars as $variant => $value) {
            $body .= sprintf(
                '<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"><title>%s</title></rect><text x="%.1f" y="%d">%s</text>' . "\n",
                $left, $y, max(1, $x($value) - $left), $bar - 2, COLOURS[$variant], htmlspecialchars($names[$variant]), $x($value) + 5, $y + 11, amount($value, $unit),
            );
            $y += $bar;
        }
        $y += $gap;
    }
    $grid = '';
    for ($tick = $low; $tick <= $high * 1.0001; $tick *= 10) {
        $grid .= sprintf('<line x1="%1$.1f" x2="%1$.1f" y1="%2$d" y2="%3$d" class="grid"/>' . "\n", $x($tick), $top - 6, $y - $gap + 6);
    }
    $legend = '';
    $at = $left;
    foreach ($names as $variant => $name) {
        $legend .= sprintf('<rect x="%d" y="%d" width="11" height="11" fill="%s"/><text x="%d" y="%d">%s</text>' . "\n", $at, $y, COLOURS[$variant], $at + 15, $y + 10, htmlspecialchars($name));
        $at += 30 + 6.6 * mb_strlen($name);
    }
    $height = $y + 24;
    $total = max($left + $width + 90, (int) $at);

    return <<<SVG
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $total $height" width="$total" height="$height" role="img">
        <style>text{font:12px sans-serif;fill:#222}.title{font-size:15px;font-weight:bold}.sub{fill:#555}.group{font-weight:bold}.grid{stroke:#ddd}</style>
        <rect width="100%" height="100%" fill="#fff"/>
        <text x="10" y="22" class="title">{$title}</text>
        <text x="10" y="42" class="sub">{$subtitle}</text>
        $grid$body$legend</svg>

        SVG;
}
