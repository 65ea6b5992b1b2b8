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
