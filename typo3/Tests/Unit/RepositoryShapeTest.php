<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Unit;

use NrLlmRuntime\Typo3\DependencyInjection\OverrideNrLlmServicesPass;
use NrLlmRuntime\Typo3\DependencyInjection\RepositoryShape;
use PHPUnit\Framework\TestCase;

final class RepositoryShapeTest extends TestCase
{
    public function testTheKnownShapeFits(): void
    {
        self::assertSame([], RepositoryShape::misfits(OverrideNrLlmServicesPass::INTERFACE));
    }

    public function testOtherShapesDoNotAndAreNamed(): void
    {
        $known = (string)file_get_contents(dirname(__DIR__) . '/Fixtures/NrLlm/Classes/Service/Tool/AgentRunRepositoryInterface.php');
        $cases = [
            // what is changed => what is said
            ['public function claimQueued(int $runUid, string $claimedBy', 'public function claimQueued(string $runUid, string $claimedBy',
                ['claimQueued(string $runUid, string $claimedBy, int $leaseExpires): bool is not what was expected.']],
            ['renewLease(int $runUid, string $claimedBy, int $leaseExpires): bool',
                'renewLease(int $runUid, string $claimedBy, int $leaseExpires): int',
                ['renewLease(int $runUid, string $claimedBy, int $leaseExpires): int is not what was expected.']],
            ['requeue(int $runUid, string $claimedBy): bool', 'requeue(int $runUid, string $claimedBy, string $why = \'\'): bool',
                ['requeue(int $runUid, string $claimedBy, string $why): bool is not what was expected.']],
            ['requeueStale(int $runUid, int $now)', 'requeueStale(int $runUid, int $before)',
                ['requeueStale(int $runUid, int $before): bool is not what was expected.']],
            ['    public function deadLetterStale(int $runUid, int $now, string $terminationReason): bool;', '',
                ['deadLetterStale() is gone.']],
            ['claimForResume(int $runUid, string $claimedBy, int $leaseExpires)', 'claimForResume(int $runUid)',
                ['claimForResume(int $runUid): bool is not what was expected.']],
            ["finishRun(\n        int \$runUid,", "finishRun(\n        string \$uuid,", ['finishRun(string $uuid, string $status']],
            ['?string $ownedBy = null', '?string $holder = null', ['?string $holder): bool is not what was expected.']],
            // passed on: any shape is accepted
            ['claimForResume(int $runUid, string $claimedBy, int $leaseExpires)',
                'claimForResume(int $runUid, string $claimedBy, int $leaseExpires, bool $force = false)', []],
            ['suspendRun(int $runUid, string $stateJson): bool', 'suspendRun(int $runUid, string $stateJson): string', []],
            ['public function maxEventSequence(int $runUid): int;', '', []],
        ];
        foreach ($cases as $number => [$from, $to, $said]) {
            self::assertStringContainsString($from, $known);
            $name = 'AgentRunRepositoryShape' . $number;
            eval(str_replace(['<?php', $from, 'interface AgentRunRepositoryInterface'], ['', $to, 'interface ' . $name], $known));
            $misfits = RepositoryShape::misfits('Netresearch\NrLlm\Service\Tool\\' . $name);
            self::assertCount(count($said), $misfits, $to . "\n" . implode("\n", $misfits));
            foreach ($said as $position => $text) {
                self::assertStringContainsString($text, $misfits[$position]);
            }
        }
    }
}
