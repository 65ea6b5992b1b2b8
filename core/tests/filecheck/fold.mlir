// RUN: tilefw opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @arithmetic
func.func @arithmetic(%p: !tile.ptr<i32>, %n: i32) {
  %two = tile.constant 2 : i32
  %three = tile.constant 3 : i32
  %zero = tile.constant 0 : i32
  %six = tile.muli %two, %three : i32
  %same = tile.addi %zero, %n : i32
  %sum = tile.addi %same, %six : i32
  // CHECK:      %[[SIX:.*]] = tile.constant 6 : i32
  // CHECK-NEXT: %[[SUM:.*]] = tile.addi %n, %[[SIX]] : i32
  // CHECK-NEXT: tile.store %p, %[[SUM]] : !tile.ptr<i32>
  tile.store %p, %sum : !tile.ptr<i32>
  func.return
}

// CHECK-LABEL: func.func @integers_wrap
func.func @integers_wrap(%p: !tile.ptr<i8>) {
  // CHECK: tile.constant -56 : i8
  %a = tile.constant 100 : i8
  %b = tile.addi %a, %a : i8
  tile.store %p, %b : !tile.ptr<i8>
  func.return
}

// CHECK-LABEL: func.func @a_quotient_by_zero_is_all_ones_and_the_remainder_the_dividend
func.func @a_quotient_by_zero_is_all_ones_and_the_remainder_the_dividend(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  // CHECK: %[[ONES:.*]] = tile.constant -1 : i32
  // CHECK: tile.store %p, %[[ONES]]
  // CHECK: %[[SEVEN:.*]] = tile.constant 7 : i32
  // CHECK: tile.store %q, %[[SEVEN]]
  %a = tile.constant 7 : i32
  %z = tile.constant 0 : i32
  %b = tile.divs %a, %z : i32
  tile.store %p, %b : !tile.ptr<i32>
  %c = tile.remu %a, %z : i32
  tile.store %q, %c : !tile.ptr<i32>
  func.return
}

// CHECK-LABEL: func.func @minus_zero_is_no_identity
func.func @minus_zero_is_no_identity(%p: !tile.ptr<f32>, %x: f32) {
  // x + 0.0 turns -0.0 into 0.0; x + -0.0 is x.
  // CHECK: %[[SUM:.*]] = tile.addf %x, %{{.*}} : f32
  // CHECK: tile.store %p, %[[SUM]]
  %z = tile.constant 0.0 : f32
  %m = tile.constant -0.0 : f32
  %a = tile.addf %x, %z : f32
  %b = tile.addf %a, %m : f32
  tile.store %p, %b : !tile.ptr<f32>
  func.return
}

// CHECK-LABEL: func.func @uniform_work_is_scalar
func.func @uniform_work_is_scalar(%p: !tile.ptr<i32>, %n: i32) {
  // CHECK:      %[[S:.*]] = tile.addi %n, %n : i32
  // CHECK-NEXT: %[[T:.*]] = tile.splat %[[S]] : i32 to tensor<16xi32>
  %t = tile.splat %n : i32 to tensor<16xi32>
  %u = tile.addi %t, %t : tensor<16xi32>
  %i = tile.iota 0 to 16
  tile.store %p[%i], %u : !tile.ptr<i32>[tensor<16xi32>]
  func.return
}

// CHECK-LABEL: func.func @decided_control_flow
func.func @decided_control_flow(%p: !tile.ptr<i32>, %n: i32) {
  // CHECK-NOT: scf.
  // CHECK: tile.store %p, %n
  %true = tile.constant true : i1
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %a = scf.if %true -> (i32) {
    scf.yield %n : i32
  } else {
    scf.yield %zero : i32
  }
  %b = scf.for %i = %zero to %one step %one iter_args(%c = %a) -> (i32) : i32 {
    %d = tile.addi %c, %i : i32
    scf.yield %d : i32
  }
  tile.store %p, %b : !tile.ptr<i32>
  func.return
}

// CHECK-LABEL: func.func @decided_masks
func.func @decided_masks(%p: !tile.ptr<i32>) {
  // CHECK:     %[[V:.*]] = tile.load %p[%{{.*}}] : !tile.ptr<i32>[tensor<8xi32>]
  // CHECK:     tile.store %p[%{{.*}}], %[[V]] : !tile.ptr<i32>[tensor<8xi32>]
  // CHECK-NOT: tile.store
  %i = tile.iota 0 to 8
  %all = tile.constant true : tensor<8xi1>
  %none = tile.constant false : tensor<8xi1>
  %v = tile.load %p[%i] mask %all : !tile.ptr<i32>[tensor<8xi32>]
  tile.store %p[%i], %v mask %all : !tile.ptr<i32>[tensor<8xi32>]
  tile.store %p[%i], %i mask %none : !tile.ptr<i32>[tensor<8xi32>]
  func.return
}
