// LEMON's MaxWeightedMatching as a peer of `benches/peers.rs`: lemon SOLVER FILE REPS SECONDS. Times are of init and run
// alone, and with the graph that they take, made of the demand.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <lemon/matching.h>
#include <lemon/smart_graph.h>

int main(int argc, char** argv) {
  using namespace lemon;
  typedef SmartGraph::EdgeMap<long long> Weights;
  if (argc < 5) return 2;
  FILE* file = fopen(argv[2], "rb");
  uint32_t racks = 0;
  if (!file || fread(&racks, 4, 1, file) != 1) return 2;
  std::vector<uint64_t> demand((size_t)racks * racks);
  if (fread(demand.data(), 8, demand.size(), file) != demand.size()) return 2;
  fclose(file);

  std::vector<long long> times, wholes;
  double total = 0;
  long long weight = 0;
  while ((int)times.size() < atoi(argv[3]) && (times.size() < 3 || total < atof(argv[4]) * 1e9)) {
    auto begun = std::chrono::steady_clock::now();
    SmartGraph graph;
    std::vector<long long> both;
    graph.reserveNode(racks);
    for (uint32_t i = 0; i < racks; i++) graph.addNode();
    for (size_t i = 0; i < racks; i++)
      for (size_t j = i + 1; j < racks; j++)
        if (uint64_t w = demand[i * racks + j] + demand[j * racks + i]) {
          graph.addEdge(graph.nodeFromId(i), graph.nodeFromId(j));
          both.push_back(w);
        }
    Weights weights(graph);
    for (size_t e = 0; e < both.size(); e++) weights[graph.edgeFromId(e)] = both[e];
    auto made = std::chrono::steady_clock::now();
    MaxWeightedMatching<SmartGraph, Weights> matching(graph, weights);
    matching.run();
    auto ended = std::chrono::steady_clock::now();
    times.push_back(std::chrono::nanoseconds(ended - made).count());
    wholes.push_back(std::chrono::nanoseconds(ended - begun).count());
    total += wholes.back();
    weight = matching.matchingWeight();
  }
  std::sort(times.begin(), times.end());
  std::sort(wholes.begin(), wholes.end());
  size_t half = times.size() / 2;
  printf("%s\tgeneral\t%s\t%u\t%zu\t%lld\t%lld\t%lld\t%lld\t0\t0\t0\t0\t%lld\n", argv[1], argv[2], racks, times.size(), wholes[half],
         wholes[0], times[half], times[0], weight);
}
