#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <set>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/server/rpc/running_server.h"

namespace attend {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST(AttendService, AnAnswerCarriesIdModelVersionShapeAndTiming) {
  RunningServer server;
  v1::AttendRequest request = MakeQuestion(5);
  request.set_request_id("abc");
  request.add_want(v1::VALUES);
  request.add_want(v1::WEIGHTS);
  PendingCall call(server, request);
  ASSERT_TRUE(call.status().ok()) << call.status().error_message();
  const v1::AttendResponse& response = call.response();
  EXPECT_EQ(response.request_id(), "abc");
  EXPECT_EQ(response.model(), "small");
  EXPECT_EQ(response.version(), "1");
  EXPECT_THAT(response.values().shape(), ::testing::ElementsAre(5, 4));
  EXPECT_EQ(response.values().data().size(), 5u * 4 * 4);
  EXPECT_THAT(response.weights().shape(), ::testing::ElementsAre(2, 5, 5));
  EXPECT_FALSE(response.has_scores());
  EXPECT_EQ(response.timing().batch_items(), 5u);
  EXPECT_EQ(response.timing().batch_requests(), 1u);
}

TEST(AttendService, ARequestWithoutIdGetsOneOfItsOwn) {
  RunningServer server;
  std::set<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    PendingCall call(server, MakeQuestion(1));
    ids.insert(call.response().request_id());
  }
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids.count(""), 0u);
}

TEST(AttendService, ConcurrentRequestsShareABatchAndGetTheirOwnAnswers) {
  RunningServer server;
  std::vector<std::string> alone;
  for (int i = 0; i < 8; ++i) {
    PendingCall call(server, MakeQuestion(3 + i, 4, i));
    alone.push_back(call.response().values().data());
  }
  server.model().gate.Close();
  const int64_t entered = server.model().gate.entered();
  PendingCall blocker(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(entered + 1);
  std::deque<PendingCall> calls;
  for (int i = 0; i < 8; ++i) calls.emplace_back(server, MakeQuestion(3 + i, 4, i));
  while (server.batcher().queue().requests < 8) std::this_thread::yield();
  server.model().gate.Open();
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(calls[i].status().ok()) << calls[i].status().error_message();
    EXPECT_EQ(calls[i].response().timing().batch_requests(), 8u);
    EXPECT_EQ(calls[i].response().timing().batch_items(), 3u + 4 + 5 + 6 + 7 + 8 + 9 + 10);
    EXPECT_EQ(calls[i].response().values().data(), alone[i]);
  }
}

std::string ValuesOf(RunningServer& server, const v1::AttendRequest& request) {
  PendingCall call(server, request);
  EXPECT_TRUE(call.status().ok()) << call.status().error_message();
  return call.response().values().data();
}

TEST(AttendService, DataAndValuesGiveTheSameBits) {
  RunningServer server;
  v1::AttendRequest request = MakeQuestion(7);
  const std::string values = ValuesOf(server, request);
  v1::Tensor* items = request.mutable_items();
  items->set_data(std::string(reinterpret_cast<const char*>(items->values().data()),
                              items->values_size() * sizeof(float)));
  items->clear_values();
  EXPECT_EQ(ValuesOf(server, request), values);
}

TEST(AttendService, AnswersComeInTheElementTypeAskedFor) {
  RunningServer server;
  v1::AttendRequest request = MakeQuestion(7);
  const std::string f32 = ValuesOf(server, request);
  request.set_answer_dtype("F64");
  const std::string f64 = ValuesOf(server, request);
  ASSERT_EQ(f64.size(), 2 * f32.size());
  for (size_t i = 0; i < f32.size() / sizeof(float); ++i) {
    float single = 0;
    double twice = 0;
    std::memcpy(&single, f32.data() + i * sizeof(float), sizeof(float));
    std::memcpy(&twice, f64.data() + i * sizeof(double), sizeof(double));
    EXPECT_EQ(twice, single);
  }
  request.set_answer_dtype("BF16");
  EXPECT_EQ(ValuesOf(server, request).size(), f32.size() / 2);
}

TEST(AttendService, ModelsAreListedAndDescribed) {
  RunningServer server;
  grpc::ClientContext context;
  v1::ListModelsResponse models;
  ASSERT_TRUE(server.stub().ListModels(&context, {}, &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  EXPECT_EQ(models.models(0).name(), "small");
  EXPECT_EQ(models.models(0).version(), "1");
  EXPECT_EQ(models.models(0).d_f(), 4);
  EXPECT_EQ(models.models(0).num_heads(), 2);
  EXPECT_EQ(models.models(0).max_sequence_length(), 64);

  v1::GetModelRequest request;
  request.set_model("small");
  v1::ModelInfo model;
  grpc::ClientContext second;
  ASSERT_TRUE(server.stub().GetModel(&second, request, &model).ok());
  EXPECT_EQ(model.SerializeAsString(), models.models(0).SerializeAsString());
  request.set_model("other");
  grpc::ClientContext third;
  EXPECT_EQ(server.stub().GetModel(&third, request, &model).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

grpc::health::v1::HealthCheckResponse::ServingStatus HealthOf(RunningServer& server,
                                                              const std::string& service) {
  const auto stub = grpc::health::v1::Health::NewStub(server.channel());
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  request.set_service(service);
  EXPECT_TRUE(stub->Check(&context, request, &response).ok());
  return response.status();
}

TEST(AttendService, HealthTellsOfTheServerAndOfEachService) {
  RunningServer server;
  for (const char* service : {"", "attend.v1.Attention"}) {
    EXPECT_EQ(HealthOf(server, service), grpc::health::v1::HealthCheckResponse::SERVING);
  }
  server.grpc().SetServing(false);
  for (const char* service : {"", "attend.v1.Attention"}) {
    EXPECT_EQ(HealthOf(server, service), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  }
}

TEST(AttendService, HealthOfAnUnknownServiceIsNotFound) {
  RunningServer server;
  const auto stub = grpc::health::v1::Health::NewStub(server.channel());
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  grpc::health::v1::HealthCheckResponse response;
  request.set_service("nosuch");
  EXPECT_EQ(stub->Check(&context, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(AttendService, WhoWatchesHealthIsToldOfEachChange) {
  using Response = grpc::health::v1::HealthCheckResponse;
  RunningServer server;
  const auto stub = grpc::health::v1::Health::NewStub(server.channel());
  grpc::ClientContext context, unknown_context;
  grpc::health::v1::HealthCheckRequest request;
  Response response;
  const auto watch = stub->Watch(&context, request);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::SERVING);
  server.grpc().SetServing(false);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::NOT_SERVING);
  server.grpc().SetServing(true);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::SERVING);
  context.TryCancel();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);

  request.set_service("nosuch");
  const auto unknown = stub->Watch(&unknown_context, request);
  ASSERT_TRUE(unknown->Read(&response));
  EXPECT_EQ(response.status(), Response::SERVICE_UNKNOWN);
}

TEST(AttendService, EveryExchangeIsToldOnce) {
  RunningServer server;
  PendingCall answered(server, MakeQuestion(3));
  EXPECT_TRUE(answered.status().ok());
  PendingCall refused(server, MakeQuestion(0));
  EXPECT_FALSE(refused.status().ok());
  const auto records = server.exchanges().records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].facts.method, "attend.v1.Attention/Attend");
  EXPECT_EQ(records[0].facts.model, "small");
  EXPECT_EQ(records[0].facts.items, 3);
  EXPECT_EQ(records[0].facts.request_id, answered.response().request_id());
  EXPECT_GT(records[0].facts.duration.count(), 0);
  EXPECT_TRUE(records[0].status.ok());
  EXPECT_EQ(records[1].status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(AttendService, ASecondServerCantTakeTheSameAddress) {
  RunningServer server;
  ExchangeObserver observer;
  const auto second = GrpcServer::Start({server.grpc().address()},
                                        {&server.registry(), &server.batcher()}, &observer);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(second.status().message(), HasSubstr(server.grpc().address()));
}

TEST(AttendService, ADrainWaitsForTheCallsBeforeItAlone) {
  RunningServer server;
  server.model().gate.Close();
  PendingCall before(server, MakeQuestion(1));
  server.model().gate.AwaitEntered(1);
  server.grpc().BeginDrain();
  PendingCall during(server, MakeQuestion(1));
  while (server.batcher().queue().requests < 1) std::this_thread::yield();
  EXPECT_FALSE(server.grpc().WaitCallsOver(Clock::now()));
  server.model().gate.Open();
  EXPECT_TRUE(before.status().ok());
  EXPECT_TRUE(server.grpc().WaitCallsOver(Clock::now() + std::chrono::minutes(1)));
}

}  // namespace
}  // namespace attend
