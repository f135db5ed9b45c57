// Regions.h: numbers the acyclic paths of a function, as Ball and Larus do ("Efficient Path Profiling", 1996).
//
// A region begins where control enters the function or comes back to it (entry, after a call that may re-enter
// instrumented code, landings), at loop headers, and where it would have too many paths or words otherwise. Its
// paths end where the next region begins. Each path has one record. Run loops (Runs.h) stand outside of regions.
#pragma once

#include "Runs.h"

namespace tracekit {

class Regions {
public:
  /// With `EverySegment` each segment is a region of its own (the block recorder). With `GroundTruth` the iterations of
  /// run loops have records as well. Regions begin with the segments `Starts`, too.
  Regions(const SegmentedFunction &S, std::vector<RunLoop> Runs, bool EverySegment, bool GroundTruth,
          llvm::ArrayRef<unsigned> Starts);

  /// Whether a region begins with segment `K`.
  bool starts(unsigned K) const { return Nodes[K].Start; }
  /// Whether control comes to segment `K` from outside the function, so that the position is in memory.
  bool isEntered(unsigned K) const { return Nodes[K].Entered; }
  /// Number of the first path of the region that segment `K` starts.
  uint64_t base(unsigned K) const { return Nodes[K].Base; }
  /// Segments of the same region that may follow segment `K`, each with what it adds to the path's number.
  struct Step {
    unsigned To;
    uint64_t Increment;
  };
  const llvm::SmallVector<Step, 2> &steps(unsigned K) const { return Nodes[K].Steps; }

  /// The segments of each path, in the order of their numbers; last those of one iteration of each run loop.
  std::vector<llvm::SmallVector<unsigned, 8>> Paths;
  std::vector<RunLoop> Runs;
  const bool GroundTruth;
  uint64_t firstRun() const { return Paths.size() - Runs.size(); }
  /// Whether segment `K` is part of a run loop that has no other records.
  bool isInRun(unsigned K) const { return Nodes[K].InRun; }

private:
  struct Node {
    bool Start = false;
    bool Entered = false;
    bool Ends = false; // a path may end here
    bool InRun = false;
    llvm::SmallVector<unsigned, 2> Following; // segments that control goes on to, in whatever region
    llvm::SmallVector<Step, 2> Steps;
    uint64_t Base = 0;
    uint64_t Paths = 0;  // from here on
    unsigned Words = 0;  // most that one of them records
    unsigned Length = 0; // segments of the longest
  };

  void link();
  void takeOut(const RunLoop &Run);
  void startAtEntries();
  void startAtRetreatingEdges();
  void limit();
  bool measure(unsigned K);
  void number();
  void list(llvm::SmallVector<unsigned, 8> &Prefix);

  const SegmentedFunction &S;
  std::vector<Node> Nodes;
  std::vector<unsigned> Order; // segments in reverse post-order of their basic blocks
};

} // namespace tracekit
