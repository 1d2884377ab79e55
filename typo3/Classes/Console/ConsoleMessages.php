<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Console;

use Symfony\Component\Console\Formatter\OutputFormatter;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * Messages as SymfonyStyle words them, but each on one line whatever the width: people's monitoring
 * reads them line by line.
 */
final class ConsoleMessages
{
    private const STYLES = ['OK' => 'fg=black;bg=green', 'ERROR' => 'fg=white;bg=red', 'WARNING' => 'fg=black;bg=yellow',
        'NOTE' => 'fg=yellow'];

    private const JSON = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PRESERVE_ZERO_FRACTION
        | JSON_THROW_ON_ERROR;

    public function __construct(private readonly OutputInterface $output) {}

    public function success(string $text): void
    {
        $this->block($this->output, 'OK', $text);
    }

    public function warning(string $text): void
    {
        $this->block($this->output, 'WARNING', $text);
    }

    public function note(string $text): void
    {
        $this->block($this->output, 'NOTE', $text);
    }

    /**
     * Reports a wrong option on the standard output, as nr_llm's commands do.
     */
    public function invalid(string $text): void
    {
        $this->block($this->output, 'ERROR', $text);
    }

    /**
     * On the error output, also with -q: the command could not do its work.
     */
    public function failure(string $text): void
    {
        $this->block($this->errors(), 'ERROR', $text, OutputInterface::VERBOSITY_QUIET);
    }

    /**
     * On the error output with -q alone, where the warnings that it sums up are not printed.
     */
    public function failureSummary(string $text): void
    {
        if ($this->output->getVerbosity() <= OutputInterface::VERBOSITY_QUIET) {
            $this->failure($text);
        }
    }

    /**
     * Reports on the error output, also with -q, that what failure() reported is over.
     */
    public function failureOver(string $text): void
    {
        $this->block($this->errors(), 'NOTE', $text, OutputInterface::VERBOSITY_QUIET);
    }

    /**
     * On the error output, beside an answer that a program may read.
     */
    public function aside(string $text): void
    {
        $this->block($this->errors(), 'NOTE', $text);
    }

    /**
     * @param int $verbosity a constant of OutputInterface
     */
    public function line(string $text, int $verbosity = OutputInterface::VERBOSITY_NORMAL): void
    {
        $this->output->writeln(OutputFormatter::escape($text), $verbosity);
    }

    /**
     * Writes JSON or metrics unchanged.
     */
    public function raw(string $text): void
    {
        $this->output->write($text, false, OutputInterface::OUTPUT_RAW);
    }

    public function errors(): OutputInterface
    {
        return $this->output instanceof ConsoleOutputInterface ? $this->output->getErrorOutput() : $this->output;
    }

    public static function json(mixed $value): string
    {
        return json_encode($value, self::JSON | JSON_PRETTY_PRINT) . "\n";
    }

    /**
     * Returns the value as one line, for a program that reads line by line.
     */
    public static function jsonLine(mixed $value): string
    {
        return json_encode($value, self::JSON) . "\n";
    }

    /**
     * Returns a text from elsewhere, such as an exception's, on one line and without control
     * characters.
     */
    public static function flat(string $text): string
    {
        $text = mb_scrub($text, 'UTF-8');

        return trim((string)preg_replace('/[\s\x00-\x1f\x7f]+/u', ' ', $text));
    }

    private function block(OutputInterface $output, string $type, string $text, int $verbosity = OutputInterface::VERBOSITY_NORMAL): void
    {
        $line = OutputFormatter::escape(sprintf(' [%s] %s', $type, self::flat($text)));
        if ($output->isDecorated()) {
            $line = sprintf('<%s>%s </>', self::STYLES[$type], $line);
        }
        $output->writeln(['', $line, ''], $verbosity);
    }
}
