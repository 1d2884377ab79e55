<?php

/**
 * The settings are wrong, the driver is not supported, or the database lacks a table or column that
 * the call needs. Another try does not help. The message says what to change.
 */
final class NrLlmConfigurationException extends NrLlmException {}
