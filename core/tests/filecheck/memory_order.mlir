// RUN: tilefw opt %s -p cse,licm,dce | filecheck %s

// CHECK-LABEL: func.func @loads_meet_up_to_the_next_store
func.func @loads_meet_up_to_the_next_store(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  // CHECK:      %a = tile.load %p
  // CHECK-NOT:  %b =
  // CHECK:      tile.store %q, %a
  // CHECK:      %c = tile.load %p
  // CHECK:      tile.store %q, %c
  %a = tile.load %p : !tile.ptr<i32>
  %b = tile.load %p : !tile.ptr<i32>
  tile.store %q, %b : !tile.ptr<i32>
  %c = tile.load %p : !tile.ptr<i32>
  tile.store %q, %c : !tile.ptr<i32>
  func.return
}

// CHECK-LABEL: func.func @volatile_loads_stay
func.func @volatile_loads_stay(%p: !tile.ptr<i32>) {
  // CHECK: tile.load %p volatile
  // CHECK: tile.load %p volatile
  %a = tile.load %p volatile : !tile.ptr<i32>
  %b = tile.load %p volatile : !tile.ptr<i32>
  func.return
}

// What another program has stored is there once the loop that waits for its flag has ended; `.cv` is as good as volatile.
// CHECK-LABEL: func.func @loads_do_not_meet_over_a_wait
func.func @loads_do_not_meet_over_a_wait(%p: !tile.ptr<i32>, %flag: !tile.ptr<i32>, %q: !tile.ptr<i32>) {
  // CHECK: %a = tile.load %p
  // CHECK: scf.while
  // CHECK: %b = tile.load %p
  // CHECK: %c = tile.load %p cache ".cv"
  // CHECK: %d = tile.load %p cache ".cv"
  %zero = tile.constant 0 : i32
  %a = tile.load %p : !tile.ptr<i32>
  scf.while () : () -> () {
    %f = tile.load %flag volatile : !tile.ptr<i32>
    %waits = tile.eqi %f, %zero : i32
    scf.condition(%waits)
  } do {
    scf.yield
  }
  %b = tile.load %p : !tile.ptr<i32>
  %c = tile.load %p cache ".cv" : !tile.ptr<i32>
  %d = tile.load %p cache ".cv" : !tile.ptr<i32>
  %ab = tile.addi %a, %b : i32
  %cd = tile.addi %c, %d : i32
  tile.store %q, %ab : !tile.ptr<i32>
  tile.store %q, %cd : !tile.ptr<i32>
  func.return
}

// CHECK-LABEL: func.func @invariants_leave_loops_but_loads_do_not
func.func @invariants_leave_loops_but_loads_do_not(%p: !tile.ptr<i32>, %n: i32) {
  // CHECK:     %s = tile.muli %n, %n : i32
  // CHECK:     scf.for
  // CHECK:     tile.load %p
  // CHECK-NOT: tile.muli
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %s = tile.muli %n, %n : i32
    %v = tile.load %p : !tile.ptr<i32>
    %t = tile.addi %v, %s : i32
    tile.store %p, %t : !tile.ptr<i32>
  }
  func.return
}

// CHECK-LABEL: func.func @carried_values_nobody_reads_go
func.func @carried_values_nobody_reads_go(%p: !tile.ptr<i32>, %n: i32) {
  // CHECK: iter_args(%a = %n) -> (i32) : i32
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %r, %s = scf.for %i = %zero to %n step %one iter_args(%a = %n, %b = %zero) -> (i32, i32) : i32 {
    %c = tile.addi %a, %one : i32
    %d = tile.addi %b, %one : i32
    scf.yield %c, %d : i32, i32
  }
  tile.store %p, %r : !tile.ptr<i32>
  func.return
}
