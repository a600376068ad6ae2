"""A gRPC client made from proto/ alone: creates, deploys and runs a flow, and says what became of its message.

usage: client.py <host:port> <api key> <target url>, with the generated stubs on PYTHONPATH
"""

import json
import sys

import grpc
from kanat.v1 import common_pb2, connector_pb2, connector_pb2_grpc, flow_pb2, flow_pb2_grpc
from kanat.v1 import lookup_table_pb2, lookup_table_pb2_grpc, message_pb2, message_pb2_grpc

FLOW = """
flow: from-python
version: 1
source:
  trigger: manual
target:
  connector: python-target
  endpoint: /orders/{{ source.id }}
  method: POST
mapping:
  id: source.id | required
  country: source.country | uppercase | lookup(python_countries, ZZ)
  total: source.total | decimal(2)
"""

DEADLINE_SECONDS = 60


def main():
    address, key, target = sys.argv[1:]
    auth = [("authorization", f"Bearer {key}")]
    call = {"metadata": auth, "timeout": DEADLINE_SECONDS}
    with grpc.insecure_channel(address) as channel:
        tables = lookup_table_pb2_grpc.LookupTableServiceStub(channel)
        connectors = connector_pb2_grpc.ConnectorServiceStub(channel)
        flows = flow_pb2_grpc.FlowServiceStub(channel)
        messages = message_pb2_grpc.MessageServiceStub(channel)

        table = tables.CreateLookupTable(lookup_table_pb2.CreateLookupTableRequest(name="python_countries"), **call)
        entry = lookup_table_pb2.LookupEntry(key="GERMANY", value="DE")
        change = lookup_table_pb2.UpsertLookupEntriesRequest(id=table.id, entries=[entry])
        assert tables.UpsertLookupEntries(change, **call).version == 2

        config = common_pb2.Json(text=json.dumps({"base_url": target, "auth": "none"}))
        instance = connector_pb2.CreateConnectorInstanceRequest(catalog_id="http", name="python-target", config=config)
        connectors.CreateConnectorInstance(instance, **call)

        flow = flows.CreateFlow(flow_pb2.CreateFlowRequest(yaml_config=FLOW), **call)
        assert flow.status == "draft", flow
        flow = flows.DeployFlow(flow_pb2.DeployFlowRequest(id=flow.id), **call)
        assert (flow.status, flow.version) == ("active", 1), flow

        # The stream is open once its head has come; what happens after that is on it.
        events = messages.StreamMessages(message_pb2.StreamMessagesRequest(flow_id=flow.id), **call)
        events.initial_metadata()
        payload = common_pb2.Json(text='{"id": 9007199254740993, "country": "Germany", "total": 149.5}')
        run = flows.RunFlow(flow_pb2.RunFlowRequest(id=flow.id, payload=payload), **call)
        statuses = []
        for event in events:
            if event.message.id == run.message_id:
                statuses.append(event.message.status)
            if statuses and statuses[-1] == "delivered":
                break
        events.cancel()
        message = messages.GetMessage(message_pb2.GetMessageRequest(id=run.message_id), **call)

        try:
            flows.GetFlow(flow_pb2.GetFlowRequest(id="flw_unknown"), **call)
            refused = "nothing"
        except grpc.RpcError as error:
            refused = error.code().name
        try:
            flows.ListFlows(flow_pb2.ListFlowsRequest(), timeout=DEADLINE_SECONDS)
            anonymous = "nothing"
        except grpc.RpcError as error:
            anonymous = error.code().name

    print(json.dumps({
        "messageId": run.message_id,
        "status": message.status,
        "output": message.output.text,
        "lastEvent": statuses[-1],
        "unknown": refused,
        "anonymous": anonymous,
    }))


main()
