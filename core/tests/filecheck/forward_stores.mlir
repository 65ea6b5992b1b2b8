// RUN: tilefw opt %s -p forward-stores | filecheck %s

// CHECK-LABEL: func.func @a_stored_number_is_known_and_the_last_store_counts
// CHECK-NEXT: tile.constant 1 : i32
// CHECK-NEXT: %next = tile.addptr %p
// CHECK-NEXT: tile.store %next, %a
// CHECK-NEXT: %sum = tile.addf %a, %b : f32
// CHECK-NEXT: tile.store %p, %sum
// CHECK-NEXT: func.return
func.func @a_stored_number_is_known_and_the_last_store_counts(%p: !tile.ptr<f32>, %a: f32, %b: f32) {
  %one = tile.constant 1 : i32
  tile.store %p, %b : !tile.ptr<f32>
  %next = tile.addptr %p, %one : !tile.ptr<f32>, i32
  tile.store %next, %b : !tile.ptr<f32>
  tile.store %p, %a : !tile.ptr<f32>
  %x = tile.load %p : !tile.ptr<f32>
  %y = tile.load %next : !tile.ptr<f32>
  tile.store %next, %x : !tile.ptr<f32>
  %sum = tile.addf %x, %y : f32
  tile.store %p, %sum : !tile.ptr<f32>
  func.return
}

// CHECK-LABEL: func.func @another_pointer_may_be_the_place
// CHECK-COUNT-3: tile.store
// CHECK:         tile.load %p
func.func @another_pointer_may_be_the_place(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %a: f32, %b: f32) {
  tile.store %p, %a : !tile.ptr<f32>
  %seen = tile.load %q : !tile.ptr<f32>
  tile.store %p, %seen : !tile.ptr<f32>
  tile.store %q, %b : !tile.ptr<f32>
  %x = tile.load %p : !tile.ptr<f32>
  tile.store %q, %x : !tile.ptr<f32>
  func.return
}

// A flag that another program waits for is stored before the barrier and before the atomic, and read anew behind both.
// CHECK-LABEL: func.func @what_orders_memory_ends_what_is_known
// CHECK:      tile.store %p, %a
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store %p, %b
// CHECK-NEXT: tile.atomic_rmw
// CHECK-NEXT: %x = tile.load %p
// CHECK-NEXT: tile.store %p, %a
// CHECK-NEXT: %y = tile.load %p volatile
// CHECK-NEXT: tile.store %p, %x
// CHECK-NEXT: %z = tile.load %p volatile
// CHECK-NEXT: %w = tile.load %p :
// CHECK-NEXT: tile.store %q, %w
func.func @what_orders_memory_ends_what_is_known(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %a: i32, %b: i32) {
  tile.store %p, %a : !tile.ptr<i32>
  tile.barrier
  tile.store %p, %b : !tile.ptr<i32>
  %old = tile.atomic_rmw add acq_rel device %q, %a : !tile.ptr<i32>
  %x = tile.load %p : !tile.ptr<i32>
  tile.store %p, %a : !tile.ptr<i32>
  %y = tile.load %p volatile : !tile.ptr<i32>
  tile.store %p, %x : !tile.ptr<i32>
  %z = tile.load %p volatile : !tile.ptr<i32>
  %w = tile.load %p : !tile.ptr<i32>
  tile.store %q, %w : !tile.ptr<i32>
  func.return
}

// A branch may store, and a masked store may: what was known before is known no more.
// CHECK-LABEL: func.func @branches_and_masks_may_store
// CHECK:      tile.store %p, %a : !tile.ptr<i32>
// CHECK:      scf.if %m {
// CHECK-NEXT:   tile.store %p, %b
// CHECK:      %x = tile.load %p
// CHECK-NEXT: tile.store %p, %b mask %m
// CHECK-NEXT: %y = tile.load %p
// CHECK-NEXT: %sum = tile.addi %x, %y
func.func @branches_and_masks_may_store(%p: !tile.ptr<i32>, %a: i32, %b: i32, %m: i1) {
  tile.store %p, %a : !tile.ptr<i32>
  scf.if %m {
    tile.store %p, %b : !tile.ptr<i32>
  }
  %x = tile.load %p : !tile.ptr<i32>
  tile.store %p, %b mask %m : !tile.ptr<i32>
  %y = tile.load %p : !tile.ptr<i32>
  %sum = tile.addi %x, %y : i32
  tile.store %p, %sum : !tile.ptr<i32>
  func.return
}

// What a program reads before it waits for another's flag may be different behind the loop that waits.
// CHECK-LABEL: func.func @a_loop_that_waits_ends_what_is_known
// CHECK:      %x = tile.load %p
// CHECK:      scf.while
// CHECK:      %y = tile.load %p
// CHECK-NEXT: tile.addi %x, %y
func.func @a_loop_that_waits_ends_what_is_known(%p: !tile.ptr<i32>, %flag: !tile.ptr<i32>) -> i32 {
  %zero = tile.constant 0 : i32
  %x = tile.load %p : !tile.ptr<i32>
  scf.while () : () -> () {
    %f = tile.load %flag volatile : !tile.ptr<i32>
    %waits = tile.eqi %f, %zero : i32
    scf.condition(%waits)
  } do {
    scf.yield
  }
  %y = tile.load %p : !tile.ptr<i32>
  %sum = tile.addi %x, %y : i32
  tile.store %p, %sum : !tile.ptr<i32>
  func.return %sum : i32
}
