<?php

/**
 * The base of all exceptions of the runtime. A wrong argument is a TypeError or a ValueError
 * instead, thrown before anything is sent to the server.
 */
class NrLlmException extends RuntimeException {}
