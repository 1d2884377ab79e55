<?php

declare(strict_types=1);

// Builds a site in a process of its own, since a process can load one shape of nr_llm's interface
// only, and prints the result as JSON.
//   php variant.php ORDER ACTION    with NRLLM_TYPO3_VARIANT (see bootstrap.php) and
//                                   NRLLM_TYPO3_CONF (TYPO3_CONF_VARS as JSON)
// ORDER: nr_llm-first, nr_llm-last. ACTION: describe, or the name of a closure below.

namespace NrLlmRuntime\Typo3\Tests\Support;

use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepository;
use NrLlmRuntime\Typo3\Repository\LeasedAgentRunRepositoryFactory;
use Symfony\Component\DependencyInjection\ContainerBuilder;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\DependencyInjection\Reference;
use TYPO3\CMS\Core\Console\CommandRegistry;

require dirname(__DIR__) . '/bootstrap.php';

$GLOBALS['TYPO3_CONF_VARS'] = json_decode((string)getenv('NRLLM_TYPO3_CONF'), true) ?: [];
$packages = getenv('NRLLM_TYPO3_VARIANT') === 'none' ? [Site::typo3Folder()] : [Site::nrLlmFolder(), Site::typo3Folder()];
$packages = $argv[1] === 'nr_llm-last' ? array_reverse($packages) : $packages;
$more = static function (ContainerBuilder $builder) use ($argv): void {
    $builder->register('test.factory', \ArrayObject::class)->setPublic(true)
        ->setArguments([[new Reference(LeasedAgentRunRepositoryFactory::class, ContainerInterface::NULL_ON_INVALID_REFERENCE)]]);
    if ($argv[2] === 'with-status') {
        $builder->autowire('Netresearch\NrLlm\Command\AgentStatusCommand')->setAutoconfigured(true);
    }
    if ($argv[2] === 'decorated') {
        $builder->register('other.decorator', 'Netresearch\NrLlm\Service\Tool\AgentRunRepository')->setAutowired(true)
            ->setDecoratedService('Netresearch\NrLlm\Service\Tool\AgentRunRepositoryInterface');
    }
};
$site = Site::build($packages, $more);
$registry = $site->get(CommandRegistry::class);
$answer = ['commands' => []];
foreach ($registry->commands as $name => $command) {
    $answer['commands'][$name] = ['class' => $registry->get($name)::class, 'schedulable' => $command['schedulable'],
        'description' => $command['description']];
}
if (getenv('NRLLM_TYPO3_VARIANT') !== 'none') {
    $runs = $site->get('Netresearch\NrLlm\Service\Tool\AgentRunPersister')->repository;
    $factory = $site->get('test.factory')[0];
    $answer['overridden'] = $factory !== null && $factory->create() instanceof LeasedAgentRunRepository;
    $answer['proxy'] = str_contains($runs::class, 'Proxy');
    if ($argv[2] === 'added-methods') {
        $uid = (int)getenv('NRLLM_TYPO3_RUN');
        $answer['claimed'] = $runs->claimForReview($uid, 'worker:web-01:77', time() + 900);
        $answer['released'] = $runs->releaseRun($uid, 'worker:web-01:77');
        $answer['releasedNamed'] = $runs->releaseRun(why: 'named', claimedBy: 'worker:web-01:77', runUid: $uid);
        $answer['releasedByOther'] = $runs->releaseRun($uid, 'worker:other:1');
        $answer['renewed'] = $runs->renewLease($uid, 'worker:web-01:77', time() + 900);
    }
    if ($argv[2] === 'changed-signature') {
        $answer['claimed'] = $runs->claimQueued((int)getenv('NRLLM_TYPO3_RUN'), 'worker:web-01:77', time() + 900);
        $answer['renewed'] = $runs->renewLease((int)getenv('NRLLM_TYPO3_RUN'), 'worker:web-01:77', time() + 901, true);
    }
}
$answer['log'] = $site->get(MemoryLogger::class)->lines();
echo json_encode($answer), "\n";
