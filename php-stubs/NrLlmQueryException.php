<?php

/**
 * The server refused a statement. `getCode()` is the server's error number (1142 for a missing
 * grant, for example).
 */
final class NrLlmQueryException extends NrLlmException {}
