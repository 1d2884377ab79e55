<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

/**
 * A listener of a site that does not work.
 */
final class FailingListener
{
    public function __invoke(object $event): void
    {
        throw new \RuntimeException('The listener failed.');
    }
}
