// ForHead.h: the head of a `for` as OpenMP wants it: one counter, one test, one step, and no other way out.
#pragma once

#include "LoopText.h"

#include <string>

namespace tracekit {

struct ForHead {
  Object Counter = nullptr;    // the variable that the loop's test reads and its last block steps, if there is one
  bool IsCanonical = false;    // and the rest is as OpenMP wants it, too
  bool IsReached = false;      // calls, or pointers, may assign the counter: the source does not tell
  bool IsElsewhere = false;    // and its address is taken outside of the loop, too
  std::string Step;            // what each iteration adds to it, if that is a constant: "+3"
  bool RunsAlways = false;     // the first test compares constants, and holds: an iteration runs
  bool HasTemporaries = false; // each test computes its bound anew, through variables without names: std::min(n, 2 * m)
};

ForHead headOf(const LoopText &Text);

} // namespace tracekit
