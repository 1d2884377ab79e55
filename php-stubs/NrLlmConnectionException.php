<?php

/**
 * The server could not be reached or was lost, a time limit passed, or the reply to a write was lost and could not be read back: then the
 * outcome is unknown.
 */
final class NrLlmConnectionException extends NrLlmException {}
