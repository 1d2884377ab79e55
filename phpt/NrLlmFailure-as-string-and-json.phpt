--TEST--
NrLlmFailure: as a string and as JSON
--EXTENSIONS--
nrllm_runtime
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/provider.inc';
use Netresearch\NrLlm\Provider\Exception as P;
$failure = NrLlmRuntime::classifyFailure(error: new P\ProviderResponseException('secret text', 503));
var_dump($failure instanceof Stringable, $failure instanceof JsonSerializable, "$failure", $failure->failureClass() === NrLlmFailure::SERVER_ERROR);
var_dump($failure->jsonSerialize());
echo json_encode(NrLlmRuntime::classifyFailure(new Exception())), "\n";
?>
--EXPECT--
bool(true)
bool(true)
string(11) "serverError"
bool(true)
array(6) {
  ["failureClass"]=>
  string(11) "serverError"
  ["retryable"]=>
  bool(true)
  ["tripsCircuit"]=>
  bool(true)
  ["errorClass"]=>
  string(62) "Netresearch\NrLlm\Provider\Exception\ProviderResponseException"
  ["httpStatus"]=>
  int(503)
  ["retryAfterSeconds"]=>
  NULL
}
{"failureClass":"unknown","retryable":false,"tripsCircuit":false,"errorClass":"Exception","httpStatus":null,"retryAfterSeconds":null}
