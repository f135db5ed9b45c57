// OwnEffects.cpp: see OwnEffects.h.
#include "OwnEffects.h"

#include "llvm/ADT/StringSwitch.h"

namespace tracekit {

bool isMathematics(llvm::StringRef Name) {
  auto IsDouble = [](llvm::StringRef Of) {
    return llvm::StringSwitch<bool>(Of)
        .Cases("cabs", "carg", "cexp", "clog", "clog10", "cpow", "cproj", "csqrt", true)
        .Cases("ccos", "csin", "ctan", "ccosh", "csinh", "ctanh", true)
        .Cases("cacos", "casin", "catan", "cacosh", "casinh", "catanh", true)
        .Cases("j0", "j1", "jn", "y0", "y1", "yn", true)
        .Default(false);
  };
  return IsDouble(Name) || (Name.consume_back("f") && IsDouble(Name));
}

bool hasOwnEffects(llvm::StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Case("_ZNSt3__112__next_primeEm", true) // libc++'s hash tables, of which all else is in headers
      .Case("_ZSt11_Hash_bytesPKvmm", true)    // std::hash of libstdc++
      .Cases("rand_r", "erand48", "nrand48", "jrand48", true)
      .Cases("strtof", "strtod", "strtold", true)
      .Cases("strtol", "strtoll", "strtoul", "strtoull", "strtoimax", "strtoumax", true)
      .Cases("sprintf", "snprintf", "vsprintf", "vsnprintf", true)
      .Cases("__sprintf_chk", "__snprintf_chk", "__vsprintf_chk", "__vsnprintf_chk", true)
      .Cases("sscanf", "vsscanf", "__isoc99_sscanf", "__isoc99_vsscanf", true)
      .Cases("__isoc23_sscanf", "__isoc23_vsscanf", true)
      .Cases("strtok_r", "strsep", true)
      .Case("malloc_usable_size", true)
      .Cases("localtime_r", "gmtime_r", "asctime_r", "ctime_r", "strftime", true)
      .Default(false);
}

} // namespace tracekit
