<?php

declare(strict_types=1);

namespace Netresearch\NrLlm\Command;

use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;

/**
 * Stands in for the status command of later releases; registered only where a test asks for it.
 */
#[AsCommand(name: 'nrllm:agent:status', description: 'The original status.')]
final class AgentStatusCommand extends Command {}
