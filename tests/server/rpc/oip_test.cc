// The Open Inference Protocol over gRPC, beside the native calls of the same server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kserve/grpc_service.grpc.pb.h"
#include "tests/server/rpc/running_server.h"

namespace attend {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Oip = inference::GRPCInferenceService;

std::string BytesOf(const std::vector<float>& floats) {
  return std::string(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
}

std::vector<float> ItemsOf(int64_t n, int seed) {
  const v1::AttendRequest request = MakeQuestion(n, 4, seed);
  return {request.items().values().begin(), request.items().values().end()};
}

void AddInput(const std::string& name, const std::string& datatype, std::vector<int64_t> shape,
              const std::string& bytes, ModelInferRequest* request) {
  auto* input = request->add_inputs();
  input->set_name(name);
  input->set_datatype(datatype);
  input->mutable_shape()->Add(shape.begin(), shape.end());
  request->add_raw_input_contents(bytes);
}

ModelInferRequest Question(int64_t n, int seed = 1) {
  ModelInferRequest request;
  request.set_model_name("small");
  AddInput("items", "FP32", {n, 4}, BytesOf(ItemsOf(n, seed)), &request);
  return request;
}

class OipTest : public ::testing::Test {
 protected:
  grpc::Status Infer(const ModelInferRequest& request, ModelInferResponse* response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, response);
  }
  void ExpectInvalid(const ModelInferRequest& request, const std::string& text) {
    ModelInferResponse response;
    const grpc::Status status = Infer(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(text));
  }
  std::string NativeValues(const v1::AttendRequest& request) {
    PendingCall call(server_, request);
    EXPECT_TRUE(call.status().ok()) << call.status().error_message();
    return call.response().values().data();
  }

  RunningServer server_;
  std::unique_ptr<Oip::Stub> stub_ = Oip::NewStub(server_.channel());
};

TEST_F(OipTest, InferGivesTheBitsOfTheNativeCall) {
  ModelInferRequest request = Question(5);
  request.set_id("abc");
  ModelInferResponse response;
  const grpc::Status status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.model_name(), "small");
  EXPECT_EQ(response.model_version(), "1");
  EXPECT_EQ(response.id(), "abc");
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "values");
  EXPECT_EQ(response.outputs(0).datatype(), "FP32");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(5, 4));
  ASSERT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_EQ(response.raw_output_contents(0), NativeValues(MakeQuestion(5)));
}

TEST_F(OipTest, TypedContentsGiveTheSameBitsAsRawOnes) {
  ModelInferRequest request = Question(3);
  ModelInferResponse raw, typed;
  ASSERT_TRUE(Infer(request, &raw).ok());
  request.clear_raw_input_contents();
  for (const float value : ItemsOf(3, 1)) {
    request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(value);
  }
  ASSERT_TRUE(Infer(request, &typed).ok());
  EXPECT_EQ(typed.raw_output_contents(0), raw.raw_output_contents(0));
}

// Two sequences of 3 and 1 items, padded to 3 with numbers that no answer may show.
TEST_F(OipTest, APaddedBatchIsTakenApartAndItsPaddingIsZero) {
  std::vector<float> items = ItemsOf(3, 1);
  const std::vector<float> second = ItemsOf(1, 2);
  items.insert(items.end(), second.begin(), second.end());
  items.resize(2 * 3 * 4, NAN);
  ModelInferRequest request;
  request.set_model_name("small");
  AddInput("items", "FP32", {2, 3, 4}, BytesOf(items), &request);
  AddInput("lengths", "INT32", {2}, std::string("\3\0\0\0\1\0\0\0", 8), &request);
  AddInput("attention_bias", "FP32", {2, 3, 3}, BytesOf(std::vector<float>(18, 0.f)), &request);
  request.add_outputs()->set_name("values");
  request.add_outputs()->set_name("weights");
  ModelInferResponse response;
  const grpc::Status status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, 4));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(2, 2, 3, 3));
  v1::AttendRequest first = MakeQuestion(3, 4, 1), other = MakeQuestion(1, 4, 2);
  for (v1::AttendRequest* one : {&first, &other}) {
    const int64_t n = one->items().shape(0);
    one->mutable_attention_bias()->mutable_shape()->Add(n);
    one->mutable_attention_bias()->mutable_shape()->Add(n);
    one->mutable_attention_bias()->set_data(std::string(n * n * sizeof(float), '\0'));
  }
  EXPECT_EQ(response.raw_output_contents(0),
            NativeValues(first) + NativeValues(other) + std::string(2 * 4 * sizeof(float), '\0'));
  const float* weights = reinterpret_cast<const float*>(response.raw_output_contents(1).data());
  EXPECT_EQ(weights[2 * 9], 1.0f);      // the only item attends to itself
  EXPECT_EQ(weights[2 * 9 + 1], 0.0f);  // padding
  EXPECT_EQ(weights[2 * 9 + 9], 1.0f);  // the second head
}

TEST_F(OipTest, OneBadSequenceFailsItsCallAndIsNamed) {
  ModelInferRequest request;
  request.set_model_name("small");
  std::vector<float> items(2 * 2 * 4, 1.f);
  items[2 * 4] = NAN;
  AddInput("items", "FP32", {2, 2, 4}, BytesOf(items), &request);
  ExpectInvalid(request, "items");
}

TEST_F(OipTest, AnswersComeInHalfPrecisionOnDemand) {
  ModelInferRequest request = Question(2);
  auto* output = request.add_outputs();
  output->set_name("values");
  (*output->mutable_parameters())["datatype"].set_string_param("FP16");
  ModelInferResponse response;
  ASSERT_TRUE(Infer(request, &response).ok());
  EXPECT_EQ(response.outputs(0).datatype(), "FP16");
  EXPECT_EQ(response.raw_output_contents(0).size(), 2u * 4 * 2);
}

TEST_F(OipTest, EveryRuleOfTheProtocolHasItsError) {
  ModelInferRequest request = Question(2);
  request.add_raw_input_contents("x");
  ExpectInvalid(request, "raw_input_contents: 2 entries for 1 inputs");
  request = Question(2);
  request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  ExpectInvalid(request, "may not be mixed");
  request = Question(2);
  request.mutable_inputs(0)->set_name("tokens");
  ExpectInvalid(request, "tokens: no such input");
  request = Question(2);
  request.mutable_inputs(0)->set_datatype("INT8");
  ExpectInvalid(request, "items: datatype \"INT8\"");
  request = Question(2);
  request.mutable_inputs(0)->set_shape(0, 3);
  ExpectInvalid(request, "needs 48 bytes, but 32 came");
  request = Question(2);
  AddInput("items", "FP32", {2, 4}, BytesOf(ItemsOf(2, 1)), &request);
  ExpectInvalid(request, "given twice");
  request = Question(2);
  AddInput("lengths", "INT32", {1}, std::string("\2\0\0\0", 4), &request);
  ExpectInvalid(request, "lengths: only beside items [B, N, d_f]");
  request = Question(2);
  request.add_outputs()->set_name("logits");
  ExpectInvalid(request, "logits: no such output");
  request = Question(2);
  (*request.mutable_parameters())["sequence_id"].set_int64_param(3);
  ExpectInvalid(request, "stateful sequences are not supported");
  request = Question(2);
  (*request.mutable_parameters())["priority"].set_string_param("high");
  ExpectInvalid(request, "priority: expected an integer");
  request = Question(2);
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  ExpectInvalid(request, "shared memory is not supported");
  request = Question(2);
  request.clear_inputs();
  request.clear_raw_input_contents();
  ExpectInvalid(request, "items: the input is missing");
  request = Question(2);
  request.set_model_name("other");
  ModelInferResponse response;
  EXPECT_EQ(Infer(request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(OipTest, ContentsAreCheckedAgainstShapeAndDatatype) {
  ModelInferRequest request = Question(2);
  request.clear_raw_input_contents();
  ExpectInvalid(request, "needs 32 bytes, but 0 came");
  request.mutable_inputs(0)->mutable_contents()->add_int64_contents(1);  // of another kind
  ExpectInvalid(request, "needs 32 bytes, but 0 came");
  request.mutable_inputs(0)->set_datatype("FP16");
  ExpectInvalid(request, "FP16 has no typed contents");
  request = Question(2);
  AddInput("key_mask", "FP32", {2}, std::string(8, '\0'), &request);
  ExpectInvalid(request, "key_mask");
  request = Question(2);
  AddInput("attention_bias", "FP32", {2, 3}, std::string(24, '\0'), &request);
  ExpectInvalid(request, "attention_bias");
  request = Question(2);
  (*request.add_outputs()->mutable_parameters())["classification"].set_int64_param(2);
  ExpectInvalid(request, "classification is not supported");
  request = Question(2);
  for (int i = 0; i < 2; ++i) request.add_outputs()->set_name("values");
  ExpectInvalid(request, "values: the output is asked for twice");
  request.mutable_outputs()->RemoveLast();
  (*request.mutable_outputs(0)->mutable_parameters())["datatype"].set_string_param("BF16");
  ExpectInvalid(request, "use FP32 or FP16");
}

TEST_F(OipTest, TheHighestVersionIsTheDefaultAndOtherParametersAreIgnored) {
  ModelInferRequest request = Question(3);
  (*request.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  (*request.mutable_parameters())["binary_data_output"].set_string_param("yes");
  ModelInferResponse response;
  ASSERT_TRUE(Infer(request, &response).ok());
  EXPECT_EQ(response.model_name(), "small");
  EXPECT_EQ(response.model_version(), "1");
  EXPECT_EQ(response.id(), "");
  EXPECT_EQ(response.parameters_size(), 0);
  EXPECT_FALSE(response.outputs(0).has_contents());
  EXPECT_EQ(response.raw_output_contents(0), NativeValues(MakeQuestion(3)));
  request.set_model_version("1");
  EXPECT_TRUE(Infer(request, &response).ok());
  request.set_model_version("7");
  EXPECT_EQ(Infer(request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_model_version("newest");
  EXPECT_EQ(Infer(request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(OipTest, CausalIsAParameter) {
  ModelInferRequest request = Question(5);
  (*request.mutable_parameters())["causal"].set_string_param("true");
  ExpectInvalid(request, "causal: expected a bool");
  (*request.mutable_parameters())["causal"].set_bool_param(true);
  ModelInferResponse response;
  ASSERT_TRUE(Infer(request, &response).ok());
  v1::AttendRequest native = MakeQuestion(5);
  EXPECT_NE(response.raw_output_contents(0), NativeValues(native));
  native.set_causal(true);
  EXPECT_EQ(response.raw_output_contents(0), NativeValues(native));
}

TEST_F(OipTest, AShapeThatPromisesMoreThanItsBytesIsRefused) {
  constexpr int64_t kMany = 1'000'000'000'000;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{kMany, 0, 4}, {kMany, 5, 0}, {kMany, 0, 0}, {0, 5, 4}}) {
    ModelInferRequest request;
    request.set_model_name("small");
    AddInput("items", "FP32", shape, "", &request);
    ExpectInvalid(request, "one sequence, one item and one feature at least");
  }
}

TEST_F(OipTest, ABatchThatCouldNeverBeQueuedIsRefusedWhole) {
  ModelInferRequest request;
  request.set_model_name("small");
  AddInput("items", "FP32", {5000, 1, 4}, BytesOf(std::vector<float>(5000 * 4)), &request);
  ExpectInvalid(request, "B = 5000, this server queues at most 4096");
}

TEST_F(OipTest, TheTimeoutParameterIsADeadline) {
  server_.model().gate.Close();
  PendingCall held(server_, MakeQuestion(1));
  server_.model().gate.AwaitEntered(1);
  ModelInferRequest request = Question(2);
  (*request.mutable_parameters())["timeout"].set_int64_param(1000);
  ModelInferResponse response;
  EXPECT_EQ(Infer(request, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  server_.model().gate.Open();
  EXPECT_TRUE(held.status().ok());
}

TEST_F(OipTest, AStreamAnswersEachRequestAndTellsOfErrorsInIt) {
  grpc::ClientContext context;
  const auto stream = stub_->ModelStreamInfer(&context);
  ModelInferRequest request = Question(3);
  request.set_id("good");
  stream->Write(request);
  inference::ModelStreamInferResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error_message(), "");
  EXPECT_EQ(response.infer_response().id(), "good");
  EXPECT_EQ(response.infer_response().raw_output_contents(0), NativeValues(MakeQuestion(3)));
  request.mutable_inputs(0)->set_name("tokens");
  request.set_id("bad");
  stream->Write(request);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_THAT(response.error_message(), HasSubstr("tokens: no such input"));
  EXPECT_EQ(response.infer_response().id(), "bad");
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OipTest, ServerAndModelDescribeThemselves) {
  const auto context = [] { return std::make_unique<grpc::ClientContext>(); };
  auto c1 = context(), c2 = context(), c3 = context(), c4 = context(), c5 = context(),
       c6 = context(), c7 = context();
  inference::ServerLiveResponse live;
  ASSERT_TRUE(stub_->ServerLive(c1.get(), {}, &live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse ready;
  ASSERT_TRUE(stub_->ServerReady(c2.get(), {}, &ready).ok());
  EXPECT_TRUE(ready.ready());
  inference::ModelReadyRequest model;
  model.set_name("small");
  inference::ModelReadyResponse model_ready;
  ASSERT_TRUE(stub_->ModelReady(c3.get(), model, &model_ready).ok());
  EXPECT_TRUE(model_ready.ready());
  model.set_name("other");
  ASSERT_TRUE(stub_->ModelReady(c4.get(), model, &model_ready).ok());
  EXPECT_FALSE(model_ready.ready());
  inference::ModelMetadataRequest metadata_request;
  metadata_request.set_name("small");
  inference::ModelMetadataResponse metadata;
  ASSERT_TRUE(stub_->ModelMetadata(c5.get(), metadata_request, &metadata).ok());
  EXPECT_THAT(metadata.versions(), ElementsAre("1"));
  EXPECT_EQ(metadata.inputs(0).name(), "items");
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(-1, 4));
  EXPECT_EQ(metadata.outputs_size(), 3);
  inference::ModelConfigRequest config_request;
  config_request.set_name("small");
  inference::ModelConfigResponse config;
  ASSERT_TRUE(stub_->ModelConfig(c6.get(), config_request, &config).ok());
  EXPECT_EQ(config.config().max_batch_size(), 0);
  EXPECT_FALSE(config.config().input(0).optional());
  EXPECT_TRUE(config.config().input(1).optional());
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(stub_->RepositoryIndex(c7.get(), {}, &index).ok());
  EXPECT_EQ(index.models(0).state(), "READY");
}

TEST_F(OipTest, TheServerSaysWhoItIs) {
  grpc::ClientContext context;
  inference::ServerMetadataResponse metadata;
  ASSERT_TRUE(stub_->ServerMetadata(&context, {}, &metadata).ok());
  EXPECT_EQ(metadata.name(), "attend");
  EXPECT_THAT(metadata.extensions(),
              ElementsAre("model_configuration", "model_repository", "statistics", "parameters"));
}

TEST_F(OipTest, LoadingByCallsIsOffUnlessEnabled) {
  grpc::ClientContext load, unload;
  inference::RepositoryModelLoadResponse loaded;
  inference::RepositoryModelUnloadResponse unloaded;
  EXPECT_EQ(stub_->RepositoryModelLoad(&load, {}, &loaded).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(stub_->RepositoryModelUnload(&unload, {}, &unloaded).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace attend
