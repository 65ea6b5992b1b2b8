// RUN: tilefw opt %s -p default | filecheck %s

// Offsets that were reshaped, joined or split are blocks as well.

// CHECK-LABEL: func.func @rows_of_a_reshaped_range
// CHECK: tile.load_block %x at (%{{.*}} : i32, i32) strides (%[[S:.*]], %[[T:.*]] : i32, i32) : !tile.ptr<f32>, tensor<4x8xf32>
func.func @rows_of_a_reshaped_range(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
  %i = tile.iota 0 to 32
  %r = tile.reshape %i : tensor<32xi32> to tensor<4x8xi32>
  %v = tile.load %x[%r] : !tile.ptr<f32>[tensor<4x8xi32>]
  tile.store %y[%r], %v : !tile.ptr<f32>[tensor<4x8xi32>]
  func.return
}

// CHECK-LABEL: func.func @a_masked_range_with_a_new_dim
// CHECK: tile.load_block %x at (%{{.*}}) strides (%{{.*}}) shape (%n : i32) checks [upper, none] : !tile.ptr<f32>, tensor<32x1xf32>
func.func @a_masked_range_with_a_new_dim(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) {
  %i = tile.iota 0 to 32
  %ns = tile.splat %n : i32 to tensor<32xi32>
  %m = tile.lts %i, %ns : tensor<32xi32>
  %r = tile.reshape %i : tensor<32xi32> to tensor<32x1xi32>
  %mr = tile.reshape %m : tensor<32xi1> to tensor<32x1xi1>
  %v = tile.load %x[%r] mask %mr : !tile.ptr<f32>[tensor<32x1xi32>]
  tile.store %y[%r], %v mask %mr : !tile.ptr<f32>[tensor<32x1xi32>]
  func.return
}

// A mask that runs along both dims of the reshaped tile bounds neither: the access keeps it.
// CHECK-LABEL: func.func @a_mask_over_two_dims_stays
// CHECK: tile.load %x[%{{.*}}] mask
func.func @a_mask_over_two_dims_stays(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) {
  %i = tile.iota 0 to 32
  %ns = tile.splat %n : i32 to tensor<32xi32>
  %m = tile.lts %i, %ns : tensor<32xi32>
  %r = tile.reshape %i : tensor<32xi32> to tensor<4x8xi32>
  %mr = tile.reshape %m : tensor<32xi1> to tensor<4x8xi1>
  %v = tile.load %x[%r] mask %mr : !tile.ptr<f32>[tensor<4x8xi32>]
  tile.store %y[%r], %v mask %mr : !tile.ptr<f32>[tensor<4x8xi32>]
  func.return
}

// CHECK-LABEL: func.func @two_ranges_joined
// CHECK: %[[H:.*]] = tile.constant 100 : i32
// CHECK: tile.load_block %x at (%{{.*}}) strides (%{{.*}}, %{{.*}} : i32, i32) : !tile.ptr<f32>, tensor<8x2xf32>
func.func @two_ranges_joined(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
  %i = tile.iota 0 to 8
  %k = tile.iota 100 to 108
  %j = tile.join %i, %k : tensor<8xi32>
  %v = tile.load %x[%j] : !tile.ptr<f32>[tensor<8x2xi32>]
  tile.store %y[%j], %v : !tile.ptr<f32>[tensor<8x2xi32>]
  func.return
}

// CHECK-LABEL: func.func @pointers_reshaped
// CHECK: tile.load_block %x at
func.func @pointers_reshaped(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
  %i = tile.iota 0 to 32
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<32x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
  %q = tile.reshape %p : tensor<32x!tile.ptr<f32>> to tensor<2x16x!tile.ptr<f32>>
  %r = tile.reshape %i : tensor<32xi32> to tensor<2x16xi32>
  %v = tile.load %q : tensor<2x16x!tile.ptr<f32>>
  tile.store %y[%r], %v : !tile.ptr<f32>[tensor<2x16xi32>]
  func.return
}
