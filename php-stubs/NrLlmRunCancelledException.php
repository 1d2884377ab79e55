<?php

/**
 * The run was cancelled.
 */
final class NrLlmRunCancelledException extends NrLlmException {}
