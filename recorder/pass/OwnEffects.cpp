// OwnEffects.cpp: see OwnEffects.h.
#include "OwnEffects.h"

#include "llvm/ADT/StringSwitch.h"

namespace tracekit {

bool hasOwnEffects(llvm::StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Cases("rand_r", "erand48", "nrand48", "jrand48", true)
      .Cases("strtod", "strtol", "strtoll", "strtoul", "strtoull", true)
      .Cases("sprintf", "snprintf", "vsprintf", "vsnprintf", true)
      .Cases("__sprintf_chk", "__snprintf_chk", "__vsprintf_chk", "__vsnprintf_chk", true)
      .Cases("sscanf", "vsscanf", "__isoc99_sscanf", "__isoc99_vsscanf", true)
      .Cases("__isoc23_sscanf", "__isoc23_vsscanf", true)
      .Cases("strtok_r", "strsep", true)
      .Cases("localtime_r", "gmtime_r", "asctime_r", "ctime_r", "strftime", true)
      .Default(false);
}

} // namespace tracekit
