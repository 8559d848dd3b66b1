"""The messages that Envoy and an external processor exchange, with the field numbers of Envoy's published API.

Only the fields that are used are described; protobuf skips the others. The classes are built from a table when this file is
loaded, because generated code is bound to one major version of protobuf, and this is not.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from google.protobuf import struct_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PROCESS: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
"""The one call of an external processor: a stream of requests, each with one response."""
CHECK: Final = "/grpc.health.v1.Health/Check"
"""The call by which load balancers and Kubernetes ask whether a server is ready."""

PACKAGE: Final = "turnfold.envoy"
"""Names do not travel: a name of our own cannot collide with those of another library in this process."""
STRUCT: Final = ".google.protobuf.Struct"
"""The type of free-form metadata."""

MESSAGES: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    # envoy/service/ext_proc/v3/external_processor.proto
    "ProcessingRequest": {
        "request_headers": (2, "HttpHeaders"),
        "response_headers": (3, "HttpHeaders"),
        "request_body": (4, "HttpBody"),
        "response_body": (5, "HttpBody"),
        "request_trailers": (6, "HttpTrailers"),
        "response_trailers": (7, "HttpTrailers"),
        "metadata_context": (8, "Metadata"),
    },
    "ProcessingResponse": {
        "request_headers": (1, "HeadersResponse"),
        "response_headers": (2, "HeadersResponse"),
        "request_body": (3, "BodyResponse"),
        "response_body": (4, "BodyResponse"),
        "request_trailers": (5, "TrailersResponse"),
        "response_trailers": (6, "TrailersResponse"),
        "immediate_response": (7, "ImmediateResponse"),
        "dynamic_metadata": (8, STRUCT),
        "mode_override": (9, "ProcessingMode"),
    },
    "HttpHeaders": {"headers": (1, "HeaderMap"), "end_of_stream": (3, "bool")},
    "HttpBody": {"body": (1, "bytes"), "end_of_stream": (2, "bool")},
    "HttpTrailers": {"trailers": (1, "HeaderMap")},
    "HeadersResponse": {"response": (1, "CommonResponse")},
    "BodyResponse": {"response": (1, "CommonResponse")},
    "TrailersResponse": {"header_mutation": (1, "HeaderMutation")},
    "CommonResponse": {"header_mutation": (2, "HeaderMutation"), "body_mutation": (3, "BodyMutation")},
    "ImmediateResponse": {
        "status": (1, "HttpStatus"),
        "headers": (2, "HeaderMutation"),
        "body": (3, "bytes"),
        "details": (5, "string"),
    },
    "HeaderMutation": {"set_headers": (1, "[HeaderValueOption]"), "remove_headers": (2, "[string]")},
    "BodyMutation": {"body": (1, "bytes")},
    # envoy/extensions/filters/http/ext_proc/v3/processing_mode.proto
    "ProcessingMode": {
        "request_header_mode": (1, "int32"),
        "response_header_mode": (2, "int32"),
        "request_body_mode": (3, "int32"),
        "response_body_mode": (4, "int32"),
    },
    # envoy/config/core/v3/base.proto
    "HeaderMap": {"headers": (1, "[HeaderValue]")},
    "HeaderValue": {"key": (1, "string"), "value": (2, "string"), "raw_value": (3, "bytes")},
    "HeaderValueOption": {"header": (1, "HeaderValue"), "append_action": (3, "int32")},
    "Metadata": {"filter_metadata": (1, "[Namespace]")},
    "Namespace": {"key": (1, "string"), "value": (2, STRUCT)},
    # envoy/type/v3/http_status.proto
    "HttpStatus": {"code": (1, "int32")},
    # grpc/health/v1/health.proto
    "HealthCheckRequest": {"service": (1, "string")},
    "HealthCheckResponse": {"status": (1, "int32")},
}
"""Messages, their fields, numbers and types; a list stands in brackets."""

BUFFERED: Final = 2
"""`ProcessingMode.BodySendMode`: the whole body in one message."""
OVERWRITE: Final = 2
"""`HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD`."""
SERVING: Final = 1
"""`HealthCheckResponse.ServingStatus`: requests are welcome."""
NOT_SERVING: Final = 2
"""`HealthCheckResponse.ServingStatus`: the server is draining."""

_SCALARS: Final = {
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "string": FieldDescriptorProto.TYPE_STRING,
}


def _field(name: str, number: int, kind: str) -> FieldDescriptorProto:
    single = kind.strip("[]")
    label = FieldDescriptorProto.LABEL_OPTIONAL if single == kind else FieldDescriptorProto.LABEL_REPEATED
    if single in _SCALARS:
        return FieldDescriptorProto(name=name, number=number, label=label, type=_SCALARS[single])
    return FieldDescriptorProto(
        name=name,
        number=number,
        label=label,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=single if single.startswith(".") else f".{PACKAGE}.{single}",
    )


def _file() -> FileDescriptorProto:
    described = [
        DescriptorProto(name=name, field=[_field(field, *place) for field, place in fields.items()])
        for name, fields in MESSAGES.items()
    ]
    return FileDescriptorProto(
        name="turnfold_envoy.proto",
        package=PACKAGE,
        syntax="proto2",
        dependency=["google/protobuf/struct.proto"],
        message_type=described,
    )


def _classes() -> Iterator[tuple[str, Any]]:
    pool = DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(_file().SerializeToString())
    for name in MESSAGES:
        yield name, GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


_CLASSES: Final[Mapping[str, Any]] = dict(_classes())


def message(name: str, **fields: Any) -> Any:
    """Return a new message of the table, with these fields."""
    return _CLASSES[name](**fields)


def parse(name: str, raw: bytes) -> Any:
    """Parse a message of the table. Raises google.protobuf.message.DecodeError."""
    return _CLASSES[name].FromString(raw)


def encode(found: Any) -> bytes:
    """Return the bytes of a message."""
    return cast("bytes", found.SerializeToString())
