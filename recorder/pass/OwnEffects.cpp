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
  bool IsOperator = llvm::StringSwitch<bool>(Name) // of complex numbers, which clang calls for `*` and `/`
                        .Cases("__mulhc3", "__mulsc3", "__muldc3", "__mulxc3", "__multc3", true)
                        .Cases("__divhc3", "__divsc3", "__divdc3", "__divxc3", "__divtc3", true)
                        .Default(false);
  return IsOperator || IsDouble(Name) || ((Name.consume_back("f") || Name.consume_back("l")) && IsDouble(Name));
}

bool hasOwnEffects(llvm::StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Case("_ZNSt3__112__next_primeEm", true) // libc++'s hash tables, of which all else is in headers
      .Case("_ZSt11_Hash_bytesPKvmm", true)    // std::hash of libstdc++
      .Cases("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base", "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
             "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base", "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
             "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
             "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_", true)
      .Cases("_ZNSt8__detail15_List_node_base7_M_hookEPS0_", "_ZNSt8__detail15_List_node_base9_M_unhookEv",
             "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_", "_ZNSt8__detail15_List_node_base4swapERS0_S1_",
             "_ZNSt8__detail15_List_node_base10_M_reverseEv", true)
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
