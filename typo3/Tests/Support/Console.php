<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use Symfony\Component\Console\Application;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Formatter\OutputFormatterInterface;
use Symfony\Component\Console\Input\ArrayInput;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\ConsoleSectionOutput;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * Runs a command as a process would: two streams, no colours, no terminal, 80 columns.
 */
final class Console extends BufferedOutput implements ConsoleOutputInterface
{
    public readonly BufferedOutput $errors;

    public function __construct(int $verbosity = self::VERBOSITY_NORMAL, bool $decorated = false)
    {
        parent::__construct($verbosity, $decorated);
        $this->errors = new BufferedOutput($verbosity, $decorated);
    }

    /**
     * @param array<string, mixed> $input
     * @return array{int, string, string} exit code, standard output, error output
     */
    public static function call(
        Command $command,
        array $input = [],
        int $verbosity = self::VERBOSITY_NORMAL,
        bool $decorated = false,
    ): array {
        putenv('COLUMNS=80');
        $output = new self($verbosity, $decorated);
        // Within an application, as the options every command has come from there.
        $command->setApplication(new Application());
        $bound = new ArrayInput($input);
        $bound->setInteractive(false);
        $code = $command->run($bound, $output);

        return [$code, $output->fetch(), $output->errors->fetch()];
    }

    public function getErrorOutput(): OutputInterface
    {
        return $this->errors;
    }

    public function setErrorOutput(OutputInterface $error): void {}

    public function setVerbosity(int $level): void
    {
        parent::setVerbosity($level);
        $this->errors->setVerbosity($level);
    }

    public function setDecorated(bool $decorated): void
    {
        parent::setDecorated($decorated);
        $this->errors->setDecorated($decorated);
    }

    public function setFormatter(OutputFormatterInterface $formatter): void
    {
        parent::setFormatter($formatter);
        $this->errors->setFormatter($formatter);
    }

    public function section(): ConsoleSectionOutput
    {
        throw new \LogicException('No sections here.');
    }
}
