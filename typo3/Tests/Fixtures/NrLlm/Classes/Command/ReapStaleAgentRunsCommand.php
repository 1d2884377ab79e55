<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Command;

use Netresearch\NrLlm\Service\Tool\AgentRunPersister;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\Messenger\MessageBusInterface;

/**
 * Stands in for nr_llm's command: the attribute, the option and the fact that it says it ran are
 * what matters here.
 */
#[AsCommand(name: 'nrllm:agent:reap', description: 'The original.')]
final class ReapStaleAgentRunsCommand extends Command
{
    public function __construct(private readonly AgentRunPersister $persister, private readonly ?MessageBusInterface $messageBus = null)
    {
        parent::__construct();
    }

    protected function configure(): void
    {
        $this->addOption('limit', 'l', InputOption::VALUE_REQUIRED, 'Limit.', '50');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $output->writeln('original reaper, limit ' . $input->getOption('limit'));

        return self::SUCCESS;
    }
}
