from . import si_pb2 as _si_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ManagerMessage(_message.Message):
    __slots__ = ("call", "hello", "register", "update_configuration", "update_node", "update_application", "update_allocation", "question", "step", "predicate_answers", "preemption_answers", "returned", "goodbye", "state_dump", "forget", "pause", "stop", "reconsider", "prepare_configuration", "commit_configuration", "abandon_configuration", "take_kept_use")
    CALL_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    UPDATE_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_NODE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_APPLICATION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_ANSWERS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_ANSWERS_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    STATE_DUMP_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    RECONSIDER_FIELD_NUMBER: _ClassVar[int]
    PREPARE_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    ABANDON_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    TAKE_KEPT_USE_FIELD_NUMBER: _ClassVar[int]
    call: int
    hello: Hello
    register: Registration
    update_configuration: _si_pb2.UpdateConfigurationRequest
    update_node: _si_pb2.NodeRequest
    update_application: _si_pb2.ApplicationRequest
    update_allocation: _si_pb2.AllocationRequest
    question: Question
    step: Step
    predicate_answers: PredicateAnswers
    preemption_answers: PreemptionAnswers
    returned: Returned
    goodbye: Goodbye
    state_dump: StateDumpAnswer
    forget: Forget
    pause: Halt
    stop: Halt
    reconsider: Reconsideration
    prepare_configuration: _si_pb2.UpdateConfigurationRequest
    commit_configuration: ConfigurationChange
    abandon_configuration: ConfigurationChange
    take_kept_use: KeptUse
    def __init__(self, call: _Optional[int] = ..., hello: _Optional[_Union[Hello, _Mapping[str, object]]] = ..., register: _Optional[_Union[Registration, _Mapping[str, object]]] = ..., update_configuration: _Optional[_Union[_si_pb2.UpdateConfigurationRequest, _Mapping[str, object]]] = ..., update_node: _Optional[_Union[_si_pb2.NodeRequest, _Mapping[str, object]]] = ..., update_application: _Optional[_Union[_si_pb2.ApplicationRequest, _Mapping[str, object]]] = ..., update_allocation: _Optional[_Union[_si_pb2.AllocationRequest, _Mapping[str, object]]] = ..., question: _Optional[_Union[Question, _Mapping[str, object]]] = ..., step: _Optional[_Union[Step, _Mapping[str, object]]] = ..., predicate_answers: _Optional[_Union[PredicateAnswers, _Mapping[str, object]]] = ..., preemption_answers: _Optional[_Union[PreemptionAnswers, _Mapping[str, object]]] = ..., returned: _Optional[_Union[Returned, _Mapping[str, object]]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping[str, object]]] = ..., state_dump: _Optional[_Union[StateDumpAnswer, _Mapping[str, object]]] = ..., forget: _Optional[_Union[Forget, _Mapping[str, object]]] = ..., pause: _Optional[_Union[Halt, _Mapping[str, object]]] = ..., stop: _Optional[_Union[Halt, _Mapping[str, object]]] = ..., reconsider: _Optional[_Union[Reconsideration, _Mapping[str, object]]] = ..., prepare_configuration: _Optional[_Union[_si_pb2.UpdateConfigurationRequest, _Mapping[str, object]]] = ..., commit_configuration: _Optional[_Union[ConfigurationChange, _Mapping[str, object]]] = ..., abandon_configuration: _Optional[_Union[ConfigurationChange, _Mapping[str, object]]] = ..., take_kept_use: _Optional[_Union[KeptUse, _Mapping[str, object]]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("version", "companion_of", "predicates", "door")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMPANION_OF_FIELD_NUMBER: _ClassVar[int]
    PREDICATES_FIELD_NUMBER: _ClassVar[int]
    DOOR_FIELD_NUMBER: _ClassVar[int]
    version: str
    companion_of: str
    predicates: bool
    door: DoorStart
    def __init__(self, version: _Optional[str] = ..., companion_of: _Optional[str] = ..., predicates: _Optional[bool] = ..., door: _Optional[_Union[DoorStart, _Mapping[str, object]]] = ...) -> None: ...

class DoorStart(_message.Message):
    __slots__ = ("epoch", "name")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    name: str
    def __init__(self, epoch: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class Registration(_message.Message):
    __slots__ = ("request", "predicates", "state_dump", "partitions")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    PREDICATES_FIELD_NUMBER: _ClassVar[int]
    STATE_DUMP_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    request: _si_pb2.RegisterResourceManagerRequest
    predicates: bool
    state_dump: bool
    partitions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request: _Optional[_Union[_si_pb2.RegisterResourceManagerRequest, _Mapping[str, object]]] = ..., predicates: _Optional[bool] = ..., state_dump: _Optional[bool] = ..., partitions: _Optional[_Iterable[str]] = ...) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ("rm_id",)
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    def __init__(self, rm_id: _Optional[str] = ...) -> None: ...

class Forget(_message.Message):
    __slots__ = ("rm_id",)
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    def __init__(self, rm_id: _Optional[str] = ...) -> None: ...

class Halt(_message.Message):
    __slots__ = ("rm_id", "reason")
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    reason: str
    def __init__(self, rm_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ConfigurationChange(_message.Message):
    __slots__ = ("rm_id", "number")
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    number: int
    def __init__(self, rm_id: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class KeptUse(_message.Message):
    __slots__ = ("rm_id", "json")
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    json: str
    def __init__(self, rm_id: _Optional[str] = ..., json: _Optional[str] = ...) -> None: ...

class Reconsideration(_message.Message):
    __slots__ = ("rm_id", "partition_name", "node_ids", "allocation_keys", "predicate_classes")
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_NAME_FIELD_NUMBER: _ClassVar[int]
    NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_KEYS_FIELD_NUMBER: _ClassVar[int]
    PREDICATE_CLASSES_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    partition_name: str
    node_ids: _containers.RepeatedScalarFieldContainer[str]
    allocation_keys: _containers.RepeatedScalarFieldContainer[str]
    predicate_classes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, rm_id: _Optional[str] = ..., partition_name: _Optional[str] = ..., node_ids: _Optional[_Iterable[str]] = ..., allocation_keys: _Optional[_Iterable[str]] = ..., predicate_classes: _Optional[_Iterable[str]] = ...) -> None: ...

class Returned(_message.Message):
    __slots__ = ("callback",)
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    callback: int
    def __init__(self, callback: _Optional[int] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("as_value", "value_version", "explain", "dry_run", "snapshot", "resource_managers", "quarantined", "validate", "queue_and_user", "extra_configuration", "would_preempt", "next_asks", "configuration_text", "health", "check_health", "callbacks_waiting", "recorded_in", "figures", "saved", "kept_use")
    AS_VALUE_FIELD_NUMBER: _ClassVar[int]
    VALUE_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPLAIN_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_MANAGERS_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_AND_USER_FIELD_NUMBER: _ClassVar[int]
    EXTRA_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    WOULD_PREEMPT_FIELD_NUMBER: _ClassVar[int]
    NEXT_ASKS_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_TEXT_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    CHECK_HEALTH_FIELD_NUMBER: _ClassVar[int]
    CALLBACKS_WAITING_FIELD_NUMBER: _ClassVar[int]
    RECORDED_IN_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    SAVED_FIELD_NUMBER: _ClassVar[int]
    KEPT_USE_FIELD_NUMBER: _ClassVar[int]
    as_value: bool
    value_version: int
    explain: Explain
    dry_run: DryRun
    snapshot: Snapshot
    resource_managers: Empty
    quarantined: Empty
    validate: Empty
    queue_and_user: Explain
    extra_configuration: ExtraConfiguration
    would_preempt: Explain
    next_asks: NextAsks
    configuration_text: ManagerAsked
    health: Empty
    check_health: Empty
    callbacks_waiting: ManagerAsked
    recorded_in: Empty
    figures: Empty
    saved: Snapshot
    kept_use: Snapshot
    def __init__(self, as_value: _Optional[bool] = ..., value_version: _Optional[int] = ..., explain: _Optional[_Union[Explain, _Mapping[str, object]]] = ..., dry_run: _Optional[_Union[DryRun, _Mapping[str, object]]] = ..., snapshot: _Optional[_Union[Snapshot, _Mapping[str, object]]] = ..., resource_managers: _Optional[_Union[Empty, _Mapping[str, object]]] = ..., quarantined: _Optional[_Union[Empty, _Mapping[str, object]]] = ..., validate: _Optional[_Union[Empty, _Mapping[str, object]]] = ..., queue_and_user: _Optional[_Union[Explain, _Mapping[str, object]]] = ..., extra_configuration: _Optional[_Union[ExtraConfiguration, _Mapping[str, object]]] = ..., would_preempt: _Optional[_Union[Explain, _Mapping[str, object]]] = ..., next_asks: _Optional[_Union[NextAsks, _Mapping[str, object]]] = ..., configuration_text: _Optional[_Union[ManagerAsked, _Mapping[str, object]]] = ..., health: _Optional[_Union[Empty, _Mapping[str, object]]] = ..., check_health: _Optional[_Union[Empty, _Mapping[str, object]]] = ..., callbacks_waiting: _Optional[_Union[ManagerAsked, _Mapping[str, object]]] = ..., recorded_in: _Optional[_Union[Empty, _Mapping[str, object]]] = ..., figures: _Optional[_Union[Empty, _Mapping[str, object]]] = ..., saved: _Optional[_Union[Snapshot, _Mapping[str, object]]] = ..., kept_use: _Optional[_Union[Snapshot, _Mapping[str, object]]] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("rm_id",)
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    def __init__(self, rm_id: _Optional[str] = ...) -> None: ...

class Explain(_message.Message):
    __slots__ = ("application_id", "allocation_key", "rm_id", "partition")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOCATION_KEY_FIELD_NUMBER: _ClassVar[int]
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    application_id: str
    allocation_key: str
    rm_id: str
    partition: str
    def __init__(self, application_id: _Optional[str] = ..., allocation_key: _Optional[str] = ..., rm_id: _Optional[str] = ..., partition: _Optional[str] = ...) -> None: ...

class NextAsks(_message.Message):
    __slots__ = ("count", "rm_id", "partition")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    count: int
    rm_id: str
    partition: str
    def __init__(self, count: _Optional[int] = ..., rm_id: _Optional[str] = ..., partition: _Optional[str] = ...) -> None: ...

class ManagerAsked(_message.Message):
    __slots__ = ("rm_id",)
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    def __init__(self, rm_id: _Optional[str] = ...) -> None: ...

class DryRun(_message.Message):
    __slots__ = ("application", "ask", "rm_id")
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    ASK_FIELD_NUMBER: _ClassVar[int]
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    application: _si_pb2.AddApplicationRequest
    ask: _si_pb2.Allocation
    rm_id: str
    def __init__(self, application: _Optional[_Union[_si_pb2.AddApplicationRequest, _Mapping[str, object]]] = ..., ask: _Optional[_Union[_si_pb2.Allocation, _Mapping[str, object]]] = ..., rm_id: _Optional[str] = ...) -> None: ...

class ExtraConfiguration(_message.Message):
    __slots__ = ("rm_id",)
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    rm_id: str
    def __init__(self, rm_id: _Optional[str] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("method", "argument")
    class Method(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        NOW: _ClassVar[Step.Method]
        DELIVER: _ClassVar[Step.Method]
        SCHEDULE: _ClassVar[Step.Method]
        RUN_UNTIL_IDLE: _ClassVar[Step.Method]
        ADVANCE_TO: _ClassVar[Step.Method]
        NEXT_DEADLINE: _ClassVar[Step.Method]
        NEXT_TIMER: _ClassVar[Step.Method]
        FIRE_NEXT: _ClassVar[Step.Method]
        INSPECT_OUTSTANDING: _ClassVar[Step.Method]
        PREEMPT_OVER_QUOTA: _ClassVar[Step.Method]
        DELIVER_EVENTS: _ClassVar[Step.Method]
        RECORD_HISTORY: _ClassVar[Step.Method]
    NOW: Step.Method
    DELIVER: Step.Method
    SCHEDULE: Step.Method
    RUN_UNTIL_IDLE: Step.Method
    ADVANCE_TO: Step.Method
    NEXT_DEADLINE: Step.Method
    NEXT_TIMER: Step.Method
    FIRE_NEXT: Step.Method
    INSPECT_OUTSTANDING: Step.Method
    PREEMPT_OVER_QUOTA: Step.Method
    DELIVER_EVENTS: Step.Method
    RECORD_HISTORY: Step.Method
    METHOD_FIELD_NUMBER: _ClassVar[int]
    ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    method: Step.Method
    argument: int
    def __init__(self, method: _Optional[_Union[Step.Method, str]] = ..., argument: _Optional[int] = ...) -> None: ...

class PredicateQuestions(_message.Message):
    __slots__ = ("batch", "node_lists", "questions")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    NODE_LISTS_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    batch: int
    node_lists: _containers.RepeatedCompositeFieldContainer[NodeList]
    questions: _containers.RepeatedCompositeFieldContainer[PredicateQuestion]
    def __init__(self, batch: _Optional[int] = ..., node_lists: _Optional[_Iterable[_Union[NodeList, _Mapping[str, object]]]] = ..., questions: _Optional[_Iterable[_Union[PredicateQuestion, _Mapping[str, object]]]] = ...) -> None: ...

class NodeList(_message.Message):
    __slots__ = ("node_ids",)
    NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    node_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class PredicateQuestion(_message.Message):
    __slots__ = ("allocation_key", "allocate", "node_list")
    ALLOCATION_KEY_FIELD_NUMBER: _ClassVar[int]
    ALLOCATE_FIELD_NUMBER: _ClassVar[int]
    NODE_LIST_FIELD_NUMBER: _ClassVar[int]
    allocation_key: str
    allocate: bool
    node_list: int
    def __init__(self, allocation_key: _Optional[str] = ..., allocate: _Optional[bool] = ..., node_list: _Optional[int] = ...) -> None: ...

class PredicateAnswers(_message.Message):
    __slots__ = ("batch", "reasons", "answers", "first")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    batch: int
    reasons: _containers.RepeatedScalarFieldContainer[str]
    answers: _containers.RepeatedCompositeFieldContainer[PredicateAnswer]
    first: int
    def __init__(self, batch: _Optional[int] = ..., reasons: _Optional[_Iterable[str]] = ..., answers: _Optional[_Iterable[_Union[PredicateAnswer, _Mapping[str, object]]]] = ..., first: _Optional[int] = ...) -> None: ...

class PredicateAnswer(_message.Message):
    __slots__ = ("refused", "reasons", "unanswered")
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_FIELD_NUMBER: _ClassVar[int]
    refused: _containers.RepeatedScalarFieldContainer[int]
    reasons: _containers.RepeatedScalarFieldContainer[int]
    unanswered: bool
    def __init__(self, refused: _Optional[_Iterable[int]] = ..., reasons: _Optional[_Iterable[int]] = ..., unanswered: _Optional[bool] = ...) -> None: ...

class PreemptionQuestions(_message.Message):
    __slots__ = ("batch", "questions")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    QUESTIONS_FIELD_NUMBER: _ClassVar[int]
    batch: int
    questions: _containers.RepeatedCompositeFieldContainer[_si_pb2.PreemptionPredicatesArgs]
    def __init__(self, batch: _Optional[int] = ..., questions: _Optional[_Iterable[_Union[_si_pb2.PreemptionPredicatesArgs, _Mapping[str, object]]]] = ...) -> None: ...

class PreemptionAnswers(_message.Message):
    __slots__ = ("batch", "answers")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    batch: int
    answers: _containers.RepeatedCompositeFieldContainer[_si_pb2.PreemptionPredicatesResponse]
    def __init__(self, batch: _Optional[int] = ..., answers: _Optional[_Iterable[_Union[_si_pb2.PreemptionPredicatesResponse, _Mapping[str, object]]]] = ...) -> None: ...

class StateDumpQuestion(_message.Message):
    __slots__ = ("batch",)
    BATCH_FIELD_NUMBER: _ClassVar[int]
    batch: int
    def __init__(self, batch: _Optional[int] = ...) -> None: ...

class StateDumpAnswer(_message.Message):
    __slots__ = ("batch", "json", "error")
    BATCH_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    batch: int
    json: str
    error: str
    def __init__(self, batch: _Optional[int] = ..., json: _Optional[str] = ..., error: _Optional[str] = ...) -> None: ...

class SchedulerMessage(_message.Message):
    __slots__ = ("call", "rm_id", "callback", "answer", "refusal", "update_node", "update_application", "update_allocation", "update_container_scheduling_state", "send_event", "predicates", "preemption_predicates", "state_dump", "replaced")
    CALL_FIELD_NUMBER: _ClassVar[int]
    RM_ID_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    UPDATE_NODE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_APPLICATION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_CONTAINER_SCHEDULING_STATE_FIELD_NUMBER: _ClassVar[int]
    SEND_EVENT_FIELD_NUMBER: _ClassVar[int]
    PREDICATES_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_PREDICATES_FIELD_NUMBER: _ClassVar[int]
    STATE_DUMP_FIELD_NUMBER: _ClassVar[int]
    REPLACED_FIELD_NUMBER: _ClassVar[int]
    call: int
    rm_id: str
    callback: int
    answer: Answer
    refusal: Refusal
    update_node: _si_pb2.NodeResponse
    update_application: _si_pb2.ApplicationResponse
    update_allocation: _si_pb2.AllocationResponse
    update_container_scheduling_state: _si_pb2.UpdateContainerSchedulingStateRequest
    send_event: Events
    predicates: PredicateQuestions
    preemption_predicates: PreemptionQuestions
    state_dump: StateDumpQuestion
    replaced: Replaced
    def __init__(self, call: _Optional[int] = ..., rm_id: _Optional[str] = ..., callback: _Optional[int] = ..., answer: _Optional[_Union[Answer, _Mapping[str, object]]] = ..., refusal: _Optional[_Union[Refusal, _Mapping[str, object]]] = ..., update_node: _Optional[_Union[_si_pb2.NodeResponse, _Mapping[str, object]]] = ..., update_application: _Optional[_Union[_si_pb2.ApplicationResponse, _Mapping[str, object]]] = ..., update_allocation: _Optional[_Union[_si_pb2.AllocationResponse, _Mapping[str, object]]] = ..., update_container_scheduling_state: _Optional[_Union[_si_pb2.UpdateContainerSchedulingStateRequest, _Mapping[str, object]]] = ..., send_event: _Optional[_Union[Events, _Mapping[str, object]]] = ..., predicates: _Optional[_Union[PredicateQuestions, _Mapping[str, object]]] = ..., preemption_predicates: _Optional[_Union[PreemptionQuestions, _Mapping[str, object]]] = ..., state_dump: _Optional[_Union[StateDumpQuestion, _Mapping[str, object]]] = ..., replaced: _Optional[_Union[Replaced, _Mapping[str, object]]] = ...) -> None: ...

class Replaced(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("number", "json", "stepped", "changed", "version", "rest_address", "build")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    STEPPED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REST_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    number: int
    json: str
    stepped: bool
    changed: bool
    version: str
    rest_address: str
    build: str
    def __init__(self, number: _Optional[int] = ..., json: _Optional[str] = ..., stepped: _Optional[bool] = ..., changed: _Optional[bool] = ..., version: _Optional[str] = ..., rest_address: _Optional[str] = ..., build: _Optional[str] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("kind", "text")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REQUEST: _ClassVar[Refusal.Kind]
        INVARIANT: _ClassVar[Refusal.Kind]
        OTHER: _ClassVar[Refusal.Kind]
        REPLACED: _ClassVar[Refusal.Kind]
    REQUEST: Refusal.Kind
    INVARIANT: Refusal.Kind
    OTHER: Refusal.Kind
    REPLACED: Refusal.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    kind: Refusal.Kind
    text: str
    def __init__(self, kind: _Optional[_Union[Refusal.Kind, str]] = ..., text: _Optional[str] = ...) -> None: ...

class Events(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_si_pb2.EventRecord]
    def __init__(self, events: _Optional[_Iterable[_Union[_si_pb2.EventRecord, _Mapping[str, object]]]] = ...) -> None: ...
