// RUN: tilefw opt %s -p tile-to-lane{waves=4} | filecheck %s

// A reduction takes its rows where they were loaded; what is computed from its results stands in the slice of that layout, so the
// way back through expand_dims and broadcast is a pick. Nothing is converted: the only shared memory is the reduction's.
// CHECK-LABEL: func.func @rows
// CHECK:      %[[X:.*]] = lane.load {{.*}}width = 4 : i64{{.*}} -> vector<16xf32>
// CHECK-NOT:  lane.alloc
// CHECK:      lane.shuffle %{{.*}} {mode = "xor", amount = 8 : i64} : (vector<4xf32>) -> vector<4xf32>
// CHECK-NOT:  lane.alloc
// CHECK:      lane.pick %{{.*}} {indices = array<i64: 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3>} : (vector<4xf32>) -> vector<16xf32>
// CHECK:      lane.subf %[[X]], %{{.*}} : vector<16xf32>
// CHECK-NOT:  lane.alloc
// CHECK:      lane.store {{.*}}width = 4 : i64
func.func @rows(%x: !tile.ptr<f32> {tile.divisible = 16 : i64}, %y: !tile.ptr<f32> {tile.divisible = 16 : i64}) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %row = tile.constant 64 : i32
  %v = tile.load_block %x at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<f32>, tensor<32x64xf32>
  %peak = tile.reduce %v axis 1 : tensor<32x64xf32> {
  ^bb0(%a : f32, %b : f32):
    %c = tile.maxf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %column = tile.expand_dims %peak axis 1 : tensor<32xf32>
  %all = tile.broadcast %column : tensor<32x1xf32> to tensor<32x64xf32>
  %d = tile.subf %v, %all : tensor<32x64xf32>
  tile.store_block %y, %d at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<f32>, tensor<32x64xf32>
  func.return
}

// What a loop adds up from reductions is carried in their slice: the loop converts nothing, and one of the copies stores.
// CHECK-LABEL: func.func @sums
// CHECK:      scf.for {{.*}} -> (vector<1xf32>) : i32 {
// CHECK-NOT:  reason
// CHECK:      scf.yield %{{.*}} : vector<1xf32>
// CHECK:      lane.eqi %{{.*}}, %{{.*}} : vector<1xi32>
// CHECK:      lane.store {{.*}}parts = "address,value,mask", width = 1 : i64
func.func @sums(%x: !tile.ptr<f32> {tile.divisible = 16 : i64}, %y: !tile.ptr<f32> {tile.divisible = 16 : i64}, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %row = tile.constant 128 : i32
  %none = tile.constant 0.0 : tensor<16xf32>
  %end = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<16xf32>) : i32 {
    %v = tile.load_block %x at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<f32>, tensor<16x8xf32>
    %s = tile.reduce %v axis 1 : tensor<16x8xf32> {
    ^bb0(%a : f32, %b : f32):
      %c = tile.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %next = tile.addf %acc, %s : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  tile.store_block %y, %end at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<16xf32>
  func.return
}

// Both sides of a transpose are coalesced, with one conversion between them, in the narrow type: the cast comes after it.
// CHECK-LABEL: func.func @transpose
// CHECK:      lane.load {{.*}}width = 8 : i64{{.*}} -> vector<32xf16>
// CHECK:      lane.alloc {{.*}}bytes = 8192 : i64
// CHECK:      lane.load {{.*}}reason = "{{.*}} shared memory"{{.*}} -> vector<32xf16>
// CHECK:      lane.castf {{.*}} : vector<32xf16> to vector<32xf32>
// CHECK:      lane.store {{.*}}width = 4 : i64
func.func @transpose(%x: !tile.ptr<f16> {tile.divisible = 16 : i64}, %y: !tile.ptr<f32> {tile.divisible = 16 : i64}) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %row = tile.constant 64 : i32
  %v = tile.load_block %x at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<f16>, tensor<64x64xf16>
  %wide = tile.castf %v : tensor<64x64xf16> to tensor<64x64xf32>
  %t = tile.trans %wide [1, 0] : tensor<64x64xf32>
  tile.store_block %y, %t at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<f32>, tensor<64x64xf32>
  func.return
}

// Addresses and masks of computed accesses are made once an access, at its first element: two for eight elements; the mask, which is
// the same for both rows, once.
// CHECK-LABEL: func.func @computed
// CHECK:      lane.muli %{{.*}} : vector<2xi32>
// CHECK:      lane.lts %{{.*}} : vector<1xi32>
// CHECK:      lane.load {{.*}}parts = "address,mask,other", width = 4 : i64, slots = array<i64: 0, 1>{{.*}} : (vector<2xi64>, vector<2xi1>, vector<8xf32>) -> vector<8xf32>
func.func @computed(%x: !tile.ptr<f32> {tile.divisible = 16 : i64}, %n: i32 {tile.divisible = 16 : i64}, %s: i32 {tile.divisible = 16 : i64}, %w: i32) {
  %i = tile.iota 0 to 16
  %j = tile.iota 0 to 64
  %m = tile.splat %w : i32 to tensor<16xi32>
  %wrapped = tile.rems %i, %m : tensor<16xi32>
  %rows = tile.expand_dims %wrapped axis 1 : tensor<16xi32>
  %pitch = tile.splat %s : i32 to tensor<16x1xi32>
  %starts = tile.muli %rows, %pitch : tensor<16x1xi32>
  %across = tile.broadcast %starts : tensor<16x1xi32> to tensor<16x64xi32>
  %columns = tile.expand_dims %j axis 0 : tensor<64xi32>
  %along = tile.broadcast %columns : tensor<1x64xi32> to tensor<16x64xi32>
  %offsets = tile.addi %across, %along : tensor<16x64xi32>
  %limit = tile.splat %n : i32 to tensor<16x64xi32>
  %inside = tile.lts %along, %limit : tensor<16x64xi32>
  %none = tile.constant 0.0 : tensor<16x64xf32>
  %v = tile.load %x[%offsets] mask %inside other %none : !tile.ptr<f32>[tensor<16x64xi32>]
  tile.store %x[%offsets], %v mask %inside : !tile.ptr<f32>[tensor<16x64xi32>]
  func.return
}
