// RUN: tilefw opt %s -p pipeline-loops{num_stages=3} | filecheck %s

// Two loads of one loop, one of them from a pointer that moves on: rings of three slots, copies two iterations ahead.
// CHECK-LABEL: func.func @product
// CHECK:      %a_ring = tile.alloc_shared : !tile.shared<3 x 64x64xf16>
// CHECK-NEXT: %b_ring = tile.alloc_shared : !tile.shared<3 x 64x64xf16>
// CHECK:      %[[FIRST:.*]] = tile.lts %c0, %n : i32
// CHECK:      %a_next = tile.slot %a_ring[%[[ZERO:.*]]] : !tile.shared<3 x 64x64xf16>
// CHECK-NEXT: tile.copy_block %x to %a_next at (%c0, %c0 : i32, i32) {{.*}} when %[[FIRST]]
// CHECK:      tile.copy_block %y to %b_next {{.*}} when %[[FIRST]]
// CHECK-NEXT: tile.commit
// CHECK:      tile.copy_block %x to %a_next_1 at (%c64, %c0 : i32, i32)
// CHECK:      tile.commit
// CHECK:      %[[LAST:.*]] = tile.subi %n, %{{.*}} : i32
// CHECK:      scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %read_slot = %[[ZERO]], %write_slot = %{{.*}}, %q = %{{.*}})
// CHECK-NEXT:   tile.wait 1
// CHECK-NEXT:   %[[AHEAD:.*]] = tile.addi %i, %{{.*}} : i32
// CHECK-NEXT:   %[[WHEN:.*]] = tile.lts %i, %[[LAST]] : i32
// CHECK-NEXT:   %[[NEXT:.*]] = tile.addptr %q, %step
// CHECK-NEXT:   %a_next_2 = tile.slot %a_ring[%write_slot] phase 2
// CHECK-NEXT:   tile.copy_block %x to %a_next_2 at (%[[AHEAD]], %c0 : i32, i32) {{.*}} when %[[WHEN]]
// CHECK-NEXT:   %b_next_2 = tile.slot %b_ring[%write_slot] phase 2
// CHECK-NEXT:   tile.copy_block %q to %b_next_2 {{.*}} when %[[WHEN]]
// CHECK-NEXT:   tile.commit
// CHECK-NEXT:   %a_slot = tile.slot %a_ring[%read_slot] phase 0
// CHECK-NEXT:   %a = tile.load_shared %a_slot
// CHECK-NEXT:   %b_slot = tile.slot %b_ring[%read_slot] phase 0
// CHECK-NEXT:   %b = tile.load_shared %b_slot
// CHECK-NEXT:   %p = tile.dot %a, %b, %acc
// CHECK:        scf.yield %p, %{{.*}}, %read_slot, %[[NEXT]] :
func.func @product(%x: !tile.ptr<f16> {tile.divisible = 16 : i64}, %y: !tile.ptr<f16> {tile.divisible = 16 : i64}, %n: i32, %step: i32 {tile.divisible = 16 : i64}) -> tensor<64x64xf32> {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %c64 = tile.constant 64 : i32
  %zero = tile.constant 0.0 : tensor<64x64xf32>
  %sum, %end = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %q = %y) -> (tensor<64x64xf32>, !tile.ptr<f16>) : i32 {
    %a = tile.load_block %x at (%i, %c0 : i32, i32) strides (%step, %c1 : i32, i32) : !tile.ptr<f16>, tensor<64x64xf16>
    %b = tile.load_block %q at (%c0, %c0 : i32, i32) strides (%step, %c1 : i32, i32) : !tile.ptr<f16>, tensor<64x64xf16>
    %p = tile.dot %a, %b, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    %next = tile.addptr %q, %step : !tile.ptr<f16>, i32
    scf.yield %p, %next : tensor<64x64xf32>, !tile.ptr<f16>
  }
  func.return %sum : tensor<64x64xf32>
}

// A row number that is itself loaded: it is loaded one iteration earlier than the row, and carried.
// CHECK-LABEL: func.func @paged
// CHECK:      %row_2 = tile.load %{{.*}} mask %{{.*}} : !tile.ptr<i32>
// CHECK:      scf.for %i = {{.*}} iter_args(%acc = %zero, %read_slot = {{.*}}, %write_slot = {{.*}}, %row_ahead = %row_2)
// CHECK:        tile.copy_block %x to %a_next_2 at (%row_ahead, %c0 : i32, i32)
// CHECK:        %[[LATER:.*]] = tile.load %{{.*}} mask %{{.*}} : !tile.ptr<i32>
// CHECK:        scf.yield %p, %{{.*}}, %read_slot, %[[LATER]] :
func.func @paged(%x: !tile.ptr<f16> {tile.divisible = 16 : i64}, %rows: !tile.ptr<i32>, %n: i32, %step: i32 {tile.divisible = 16 : i64}) -> tensor<64x64xf32> {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 1 : i32
  %zero = tile.constant 0.0 : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %at = tile.addptr %rows, %i : !tile.ptr<i32>, i32
    %row = tile.load %at : !tile.ptr<i32>
    %a = tile.load_block %x at (%row, %c0 : i32, i32) strides (%step, %c1 : i32, i32) : !tile.ptr<f16>, tensor<64x64xf16>
    %p = tile.dot %a, %a, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }
  func.return %sum : tensor<64x64xf32>
}
