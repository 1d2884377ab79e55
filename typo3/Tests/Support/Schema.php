<?php

declare(strict_types=1);

namespace NrLlmRuntime\Typo3\Tests\Support;

use JsonSchema\Validator;
use PHPUnit\Framework\Assert;

/**
 * Checks a JSON answer against its documented schema.
 */
final class Schema
{
    /**
     * @return array<string, mixed> the document
     */
    public static function check(string $name, string $json): array
    {
        $document = json_decode($json, false, 64, JSON_THROW_ON_ERROR);
        $schema = json_decode(
            (string)file_get_contents(dirname(__DIR__, 2) . '/Resources/Public/Schema/' . $name . '.schema.json'),
            false,
            64,
            JSON_THROW_ON_ERROR,
        );
        $validator = new Validator();
        $validator->validate($document, $schema);
        Assert::assertSame([], $validator->getErrors(), $json);

        return json_decode($json, true);
    }
}
