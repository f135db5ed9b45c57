; Moves a value of each type: tests/programs/test_values.py. values.c calls them with random bytes.
target triple = "x86_64-pc-linux-gnu"

define void @move_i1(ptr %to, ptr %from) noinline {
  %v = load i1, ptr %from, align 1
  store i1 %v, ptr %to, align 1
  ret void
}

define void @move_i5(ptr %to, ptr %from) noinline {
  %v = load i5, ptr %from, align 1
  store i5 %v, ptr %to, align 1
  ret void
}

define void @move_i8(ptr %to, ptr %from) noinline {
  %v = load i8, ptr %from, align 1
  store i8 %v, ptr %to, align 1
  ret void
}

define void @move_i16(ptr %to, ptr %from) noinline {
  %v = load i16, ptr %from, align 1
  store i16 %v, ptr %to, align 1
  ret void
}

define void @move_i17(ptr %to, ptr %from) noinline {
  %v = load i17, ptr %from, align 1
  store i17 %v, ptr %to, align 1
  ret void
}

define void @move_i24(ptr %to, ptr %from) noinline {
  %v = load i24, ptr %from, align 1
  store i24 %v, ptr %to, align 1
  ret void
}

define void @move_i32(ptr %to, ptr %from) noinline {
  %v = load i32, ptr %from, align 1
  store i32 %v, ptr %to, align 1
  ret void
}

define void @move_i40(ptr %to, ptr %from) noinline {
  %v = load i40, ptr %from, align 1
  store i40 %v, ptr %to, align 1
  ret void
}

define void @move_i56(ptr %to, ptr %from) noinline {
  %v = load i56, ptr %from, align 1
  store i56 %v, ptr %to, align 1
  ret void
}

define void @move_i64(ptr %to, ptr %from) noinline {
  %v = load i64, ptr %from, align 1
  store i64 %v, ptr %to, align 1
  ret void
}

define void @move_i65(ptr %to, ptr %from) noinline {
  %v = load i65, ptr %from, align 1
  store i65 %v, ptr %to, align 1
  ret void
}

define void @move_i72(ptr %to, ptr %from) noinline {
  %v = load i72, ptr %from, align 1
  store i72 %v, ptr %to, align 1
  ret void
}

define void @move_i80(ptr %to, ptr %from) noinline {
  %v = load i80, ptr %from, align 1
  store i80 %v, ptr %to, align 1
  ret void
}

define void @move_i128(ptr %to, ptr %from) noinline {
  %v = load i128, ptr %from, align 1
  store i128 %v, ptr %to, align 1
  ret void
}

define void @move_i256(ptr %to, ptr %from) noinline {
  %v = load i256, ptr %from, align 1
  store i256 %v, ptr %to, align 1
  ret void
}

define void @move_i448(ptr %to, ptr %from) noinline {
  %v = load i448, ptr %from, align 1
  store i448 %v, ptr %to, align 1
  ret void
}

define void @move_i512(ptr %to, ptr %from) noinline {
  %v = load i512, ptr %from, align 1
  store i512 %v, ptr %to, align 1
  ret void
}

define void @move_half(ptr %to, ptr %from) noinline {
  %v = load half, ptr %from, align 1
  store half %v, ptr %to, align 1
  ret void
}

define void @move_bfloat(ptr %to, ptr %from) noinline {
  %v = load bfloat, ptr %from, align 1
  store bfloat %v, ptr %to, align 1
  ret void
}

define void @move_float(ptr %to, ptr %from) noinline {
  %v = load float, ptr %from, align 1
  store float %v, ptr %to, align 1
  ret void
}

define void @move_double(ptr %to, ptr %from) noinline {
  %v = load double, ptr %from, align 1
  store double %v, ptr %to, align 1
  ret void
}

define void @move_fp80(ptr %to, ptr %from) noinline {
  %v = load x86_fp80, ptr %from, align 1
  store x86_fp80 %v, ptr %to, align 1
  ret void
}

define void @move_fp128(ptr %to, ptr %from) noinline {
  %v = load fp128, ptr %from, align 1
  store fp128 %v, ptr %to, align 1
  ret void
}

define void @move_ptr(ptr %to, ptr %from) noinline {
  %v = load ptr, ptr %from, align 1
  store ptr %v, ptr %to, align 1
  ret void
}

define void @move_v3float(ptr %to, ptr %from) noinline {
  %v = load <3 x float>, ptr %from, align 1
  store <3 x float> %v, ptr %to, align 1
  ret void
}

define void @move_v4i1(ptr %to, ptr %from) noinline {
  %v = load <4 x i1>, ptr %from, align 1
  store <4 x i1> %v, ptr %to, align 1
  ret void
}

define void @move_v9i1(ptr %to, ptr %from) noinline {
  %v = load <9 x i1>, ptr %from, align 1
  store <9 x i1> %v, ptr %to, align 1
  ret void
}

define void @move_v3i24(ptr %to, ptr %from) noinline {
  %v = load <3 x i24>, ptr %from, align 1
  store <3 x i24> %v, ptr %to, align 1
  ret void
}

define void @move_v3i8(ptr %to, ptr %from) noinline {
  %v = load <3 x i8>, ptr %from, align 1
  store <3 x i8> %v, ptr %to, align 1
  ret void
}

define void @move_v2ptr(ptr %to, ptr %from) noinline {
  %v = load <2 x ptr>, ptr %from, align 1
  store <2 x ptr> %v, ptr %to, align 1
  ret void
}

define void @move_v5i16(ptr %to, ptr %from) noinline {
  %v = load <5 x i16>, ptr %from, align 1
  store <5 x i16> %v, ptr %to, align 1
  ret void
}

define void @move_v2double(ptr %to, ptr %from) noinline {
  %v = load <2 x double>, ptr %from, align 1
  store <2 x double> %v, ptr %to, align 1
  ret void
}

define void @move_v16i32(ptr %to, ptr %from) noinline {
  %v = load <16 x i32>, ptr %from, align 1
  store <16 x i32> %v, ptr %to, align 1
  ret void
}

define void @move_v17i32(ptr %to, ptr %from) noinline {
  %v = load <17 x i32>, ptr %from, align 1
  store <17 x i32> %v, ptr %to, align 1
  ret void
}

define void @move_v64i8(ptr %to, ptr %from) noinline {
  %v = load <64 x i8>, ptr %from, align 1
  store <64 x i8> %v, ptr %to, align 1
  ret void
}

define void @move_atomic(ptr %to, ptr %from) noinline {
  %v = load atomic i64, ptr %from seq_cst, align 8
  store atomic volatile i64 %v, ptr %to release, align 8
  ret void
}

define void @move_masked(ptr %to, ptr %from) noinline {
  %v = call <4 x float> @llvm.masked.load.v4f32.p0(ptr %from, i32 1, <4 x i1> <i1 1, i1 0, i1 1, i1 1>, <4 x float> zeroinitializer)
  call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %to, i32 1, <4 x i1> <i1 1, i1 0, i1 1, i1 1>)
  ret void
}

define void @move_packed(ptr %to, ptr %from) noinline {
  %v = call <4 x i16> @llvm.masked.expandload.v4i16(ptr %from, <4 x i1> <i1 1, i1 0, i1 1, i1 1>, <4 x i16> zeroinitializer)
  call void @llvm.masked.compressstore.v4i16(<4 x i16> %v, ptr %to, <4 x i1> <i1 1, i1 0, i1 1, i1 1>)
  ret void
}

define void @move_scattered(ptr %to, ptr %from) noinline {
  %a = getelementptr i64, ptr %from, <2 x i64> <i64 1, i64 0>
  %b = getelementptr i64, ptr %to, <2 x i64> <i64 1, i64 0>
  %v = call <2 x i64> @llvm.masked.gather.v2i64.v2p0(<2 x ptr> %a, i32 1, <2 x i1> <i1 1, i1 1>, <2 x i64> zeroinitializer)
  call void @llvm.masked.scatter.v2i64.v2p0(<2 x i64> %v, <2 x ptr> %b, i32 1, <2 x i1> <i1 1, i1 1>)
  ret void
}

declare <4 x float> @llvm.masked.load.v4f32.p0(ptr, i32, <4 x i1>, <4 x float>)
declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)
declare <4 x i16> @llvm.masked.expandload.v4i16(ptr, <4 x i1>, <4 x i16>)
declare void @llvm.masked.compressstore.v4i16(<4 x i16>, ptr, <4 x i1>)
declare <2 x i64> @llvm.masked.gather.v2i64.v2p0(<2 x ptr>, i32, <2 x i1>, <2 x i64>)
declare void @llvm.masked.scatter.v2i64.v2p0(<2 x i64>, <2 x ptr>, i32, <2 x i1>)
