// RUN: tilefw opt %s -p canonicalize,cse,structured-access,canonicalize,cse,licm,dce | filecheck %s

// CHECK-LABEL: func.func @no_load_moves_over_an_atomic
func.func @no_load_moves_over_an_atomic(%p: !tile.ptr<i32>, %flag: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  // CHECK:      %a = tile.load %p
  // CHECK:      tile.atomic_rmw or acquire device %flag
  // CHECK:      %b = tile.load %p
  // CHECK:      %s = tile.addi %a, %b
  %zero = tile.constant 0 : i32
  %a = tile.load %p : !tile.ptr<i32>
  %old = tile.atomic_rmw or acquire device %flag, %zero : !tile.ptr<i32>
  %b = tile.load %p : !tile.ptr<i32>
  %s = tile.addi %a, %b : i32
  tile.store %q, %s : !tile.ptr<i32>
  func.return
}

// CHECK-LABEL: func.func @equal_atomics_are_two_and_unread_ones_stay
func.func @equal_atomics_are_two_and_unread_ones_stay(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  // CHECK: tile.atomic_rmw add relaxed device %p
  // CHECK: tile.atomic_rmw add relaxed device %p
  // CHECK: tile.atomic_cas relaxed device %p
  %one = tile.constant 1 : i32
  %a = tile.atomic_rmw add relaxed device %p, %one : !tile.ptr<i32>
  %b = tile.atomic_rmw add relaxed device %p, %one : !tile.ptr<i32>
  %c = tile.atomic_cas relaxed device %p, %one, %one : !tile.ptr<i32>
  %s = tile.addi %a, %b : i32
  tile.store %q, %s : !tile.ptr<i32>
  func.return
}

// CHECK-LABEL: func.func @an_invariant_atomic_stays_in_its_loop
func.func @an_invariant_atomic_stays_in_its_loop(%p: !tile.ptr<i32>, %n: i32) {
  // CHECK:      scf.for
  // CHECK-NEXT:   tile.atomic_rmw add relaxed device %p, %n
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %a = tile.atomic_rmw add relaxed device %p, %n : !tile.ptr<i32>
  }
  func.return
}

// CHECK-LABEL: func.func @a_loop_that_waits_stays
func.func @a_loop_that_waits_stays(%lock: !tile.ptr<i32>) {
  // CHECK: scf.while
  // CHECK: tile.atomic_cas acquire device %lock
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  scf.while () : () -> () {
    %old = tile.atomic_cas acquire device %lock, %zero, %one : !tile.ptr<i32>
    %taken = tile.eqi %old, %one : i32
    scf.condition(%taken)
  } do {
    scf.yield
  }
  func.return
}

// CHECK-LABEL: func.func @masks_are_decided_and_pointers_become_offsets
func.func @masks_are_decided_and_pointers_become_offsets(%p: !tile.ptr<f32>, %x: f32) {
  // CHECK:      %i = tile.iota 0 to 8
  // CHECK:      tile.atomic_rmw add release device %p[%i], %{{.*}} : !tile.ptr<f32>[tensor<8xi32>]
  // CHECK-NOT:  tile.atomic_rmw
  // CHECK:      func.return
  %i = tile.iota 0 to 8
  %ps = tile.splat %p : !tile.ptr<f32> to tensor<8x!tile.ptr<f32>>
  %q = tile.addptr %ps, %i : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  %xs = tile.splat %x : f32 to tensor<8xf32>
  %all = tile.constant true : tensor<8xi1>
  %none = tile.constant false : tensor<8xi1>
  %a = tile.atomic_rmw add release device %q, %xs mask %all : tensor<8x!tile.ptr<f32>>
  %b = tile.atomic_rmw xchg release device %q, %xs mask %none : tensor<8x!tile.ptr<f32>>
  func.return
}
