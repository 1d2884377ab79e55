<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Functional;

use NrLlmRuntime\Typo3\Command\ReapCommand;
use NrLlmRuntime\Typo3\Command\StatusCommand;
use NrLlmRuntime\Typo3\Command\WorkCommand;
use NrLlmRuntime\Typo3\Tests\Support\Process;
use NrLlmRuntime\Typo3\Tests\Support\SiteTestCase;

/**
 * The service files in Symfony's real container, in both load orders and with other shapes of
 * nr_llm.
 */
final class ContainerTest extends SiteTestCase
{
    private const ORDERS = ['nr_llm-first', 'nr_llm-last'];

    public function testTheCommandAndTheRepositoryAreTakenOverInBothLoadOrders(): void
    {
        foreach (self::ORDERS as $order) {
            $answer = Process::variant('', $order, 'describe');
            self::assertSame(
                ['nrllm:agent:reap', 'nrllm:agent:status', 'nrllm:agent:work'],
                self::sorted(array_keys($answer['commands'])),
                $order,
            );
            self::assertSame(
                ['class' => ReapCommand::class, 'schedulable' => true,
                    'description' => 'Reclaim or dead-letter queued agent runs whose worker lease has expired.'],
                $answer['commands']['nrllm:agent:reap'],
                $order,
            );
            self::assertSame(StatusCommand::class, $answer['commands']['nrllm:agent:status']['class'], $order);
            self::assertSame(WorkCommand::class, $answer['commands']['nrllm:agent:work']['class'], $order);
            self::assertFalse($answer['commands']['nrllm:agent:work']['schedulable'], $order);
            self::assertSame(self::hasProxies(), $answer['overridden'], $order);
            self::assertSame(self::hasProxies(), $answer['proxy'], $order);
            self::assertSame([], $answer['log'], $order);
        }
    }

    public function testNewMethodsOfALaterReleasePassThrough(): void
    {
        foreach (self::ORDERS as $order) {
            $uid = $this->db->run(['status' => 'waiting_for_input']);
            $answer = Process::variant('Added', $order, 'added-methods', ['NRLLM_TYPO3_RUN' => (string)$uid]);
            self::assertSame(self::hasProxies(), $answer['overridden'], $order);
            self::assertTrue($answer['claimed'], $order);
            // A method that this package does not know gets the owner that the row has, by position
            // and by name.
            $owner = $this->db->row($uid)['claimed_by'];
            self::assertSame("$uid by $owner: none", $answer['released'], $order);
            self::assertSame("$uid by $owner: named", $answer['releasedNamed'], $order);
            self::assertSame("$uid by worker:other:1: none", $answer['releasedByOther'], $order);
            self::assertTrue($answer['renewed'], $order);
            self::assertStringStartsWith('worker:web-01:77' . (self::hasProxies() ? ':' : ''), $owner, $order);
        }
    }

    public function testAChangedSignatureLeavesNrLlmsRepositoryInCharge(): void
    {
        foreach (self::ORDERS as $order) {
            $uid = $this->db->run();
            $answer = Process::variant('Changed', $order, 'changed-signature', ['NRLLM_TYPO3_RUN' => (string)$uid]);
            self::assertFalse($answer['overridden'], $order);
            self::assertTrue($answer['claimed'], $order);
            self::assertTrue($answer['renewed'], $order);
            self::assertSame('worker:web-01:77', $this->db->row($uid)['claimed_by'], $order);
            self::assertSame(ReapCommand::class, $answer['commands']['nrllm:agent:reap']['class'], $order);
            if (self::hasProxies()) {
                self::assertCount(1, $answer['log'], $order);
                self::assertStringContainsString('renewLease(int $runUid, string $claimedBy, int $leaseExpires, bool $strict): bool is not what was expected', $answer['log'][0]);
            }
        }
    }

    public function testWithoutNrLlmTheSiteStartsAndHasNoneOfTheCommands(): void
    {
        foreach (self::ORDERS as $order) {
            self::assertSame(['commands' => [], 'log' => []], Process::variant('none', $order, 'describe'), $order);
        }
    }

    public function testNrLlmsOwnStatusCommandKeepsItsName(): void
    {
        foreach (self::ORDERS as $order) {
            $commands = Process::variant('', $order, 'with-status')['commands'];
            self::assertSame('Netresearch\NrLlm\Command\AgentStatusCommand', $commands['nrllm:agent:status']['class'], $order);
            self::assertSame(StatusCommand::class, $commands['nrllm:runtime:status']['class'], $order);
        }
    }

    public function testASecondDecoratorOfTheRepositoryBreaksNothing(): void
    {
        foreach (self::ORDERS as $order) {
            $answer = Process::variant('', $order, 'decorated');
            self::assertFalse($answer['proxy'], $order);
            self::assertSame(self::hasProxies(), $answer['overridden'], $order);
        }
    }

    public function testWithoutTheExtensionTheOriginalsStayInCharge(): void
    {
        $answer = Process::variant('', 'nr_llm-first', 'describe', [], withModule: false);
        self::assertSame(ReapCommand::class, $answer['commands']['nrllm:agent:reap']['class']);
        self::assertFalse($answer['overridden']);
        if (self::hasProxies()) {
            self::assertCount(1, $answer['log']);
            self::assertStringContainsString('nr_llm\'s own PHP code stays in use', $answer['log'][0]);
            self::assertStringContainsString('The PHP extension nrllm_runtime is not loaded. The package nrllm-runtime/ffi is not installed. '
                . 'Install one of the two (Documentation/Installation.md).', $answer['log'][0]);
        }
    }

    public function testAContainerWithoutAMessageBusCompiles(): void
    {
        $this->site(withBus: false);
        self::assertInstanceOf(ReapCommand::class, $this->command('nrllm:agent:reap'));
    }

    /**
     * @param list<string> $names
     * @return list<string>
     */
    private static function sorted(array $names): array
    {
        sort($names);

        return $names;
    }
}
