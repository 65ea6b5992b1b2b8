// RUN: tilefw opt %s -p default | filecheck %s

// CHECK-LABEL: func.func @add
// CHECK:      %[[X:.*]] = tile.load_block %x at (%[[P:.*]] : i32) strides (%[[ONE:.*]] : i32) shape (%n : i32) checks [upper]
// CHECK-NEXT: %[[Y:.*]] = tile.load_block %y at (%[[P]] : i32) strides (%[[ONE]] : i32) shape (%n : i32) checks [upper]
// CHECK-NEXT: %[[Z:.*]] = tile.addf %[[X]], %[[Y]] : tensor<1024xf32>
// CHECK-NEXT: tile.store_block %o, %[[Z]] at (%[[P]] : i32) strides (%[[ONE]] : i32) shape (%n : i32) checks [upper]
func.func @add(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) {
  %0 = tile.program_id 0
  %c = tile.constant 1024 : i32
  %1 = tile.muli %0, %c : i32
  %2 = tile.iota 0 to 1024
  %3 = tile.splat %1 : i32 to tensor<1024xi32>
  %4 = tile.addi %2, %3 : tensor<1024xi32>
  %5 = tile.splat %n : i32 to tensor<1024xi32>
  %6 = tile.lts %4, %5 : tensor<1024xi32>
  %7 = tile.splat %x : !tile.ptr<f32> to tensor<1024x!tile.ptr<f32>>
  %8 = tile.addptr %7, %4 : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %9 = tile.load %8 mask %6 : tensor<1024x!tile.ptr<f32>>
  %10 = tile.load %y[%4] mask %6 : !tile.ptr<f32>[tensor<1024xi32>]
  %11 = tile.addf %9, %10 : tensor<1024xf32>
  tile.store %o[%4], %11 mask %6 : !tile.ptr<f32>[tensor<1024xi32>]
  func.return
}

// Pointers that the loop carries become scalars, and their masks count on from 0.
// CHECK-LABEL: func.func @g
// CHECK:      scf.for {{.*}} iter_args(%a = %z, %p = %x, %kc = %c0, %q = %o)
// CHECK-SAME:   -> (tensor<32x64xf32>, !tile.ptr<f32>, i32, !tile.ptr<f32>)
// CHECK:      %[[REST:.*]] = tile.subi
// CHECK-NEXT: tile.load_block %p at (%b, %c0 : i32, i32) strides (%s, %{{.*}} : i32, i32) shape (%n, %[[REST]] : i32, i64) checks [upper, upper]
func.func @g(%x: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32, %m: i32, %s: i32) {
  %pid = tile.program_id 0
  %c32 = tile.constant 32 : i32
  %b = tile.muli %pid, %c32 : i32
  %i = tile.iota 0 to 32
  %bs = tile.splat %b : i32 to tensor<32xi32>
  %r = tile.addi %bs, %i : tensor<32xi32>
  %j = tile.iota 0 to 64
  %re = tile.expand_dims %r axis 1 : tensor<32xi32>
  %je = tile.expand_dims %j axis 0 : tensor<64xi32>
  %ss = tile.splat %s : i32 to tensor<32x1xi32>
  %rs = tile.muli %re, %ss : tensor<32x1xi32>
  %rb = tile.broadcast %rs : tensor<32x1xi32> to tensor<32x64xi32>
  %jb = tile.broadcast %je : tensor<1x64xi32> to tensor<32x64xi32>
  %off = tile.addi %rb, %jb : tensor<32x64xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<32x64x!tile.ptr<f32>>
  %p0 = tile.addptr %xs, %off : tensor<32x64x!tile.ptr<f32>>, tensor<32x64xi32>
  %os = tile.splat %o : !tile.ptr<f32> to tensor<32x64x!tile.ptr<f32>>
  %q0 = tile.addptr %os, %off : tensor<32x64x!tile.ptr<f32>>, tensor<32x64xi32>
  %ns = tile.splat %n : i32 to tensor<32x1xi32>
  %rm = tile.lts %re, %ns : tensor<32x1xi32>
  %rmb = tile.broadcast %rm : tensor<32x1xi1> to tensor<32x64xi1>
  %c0 = tile.constant 0 : i32
  %c64 = tile.constant 64 : i32
  %z = tile.constant 0.0 : tensor<32x64xf32>
  %acc, %pp, %kk, %qq = scf.for %k = %c0 to %m step %c64 iter_args(%a = %z, %p = %p0, %kc = %je, %q = %q0) -> (tensor<32x64xf32>, tensor<32x64x!tile.ptr<f32>>, tensor<1x64xi32>, tensor<32x64x!tile.ptr<f32>>) : i32 {
    %ms = tile.splat %m : i32 to tensor<1x64xi32>
    %km = tile.lts %kc, %ms : tensor<1x64xi32>
    %kmb = tile.broadcast %km : tensor<1x64xi1> to tensor<32x64xi1>
    %mask = tile.andi %rmb, %kmb : tensor<32x64xi1>
    %v = tile.load %p mask %mask other %z : tensor<32x64x!tile.ptr<f32>>
    %a2 = tile.addf %a, %v : tensor<32x64xf32>
    tile.store %q, %a2 mask %mask : tensor<32x64x!tile.ptr<f32>>
    %c = tile.constant 64 : tensor<32x64xi32>
    %p2 = tile.addptr %p, %c : tensor<32x64x!tile.ptr<f32>>, tensor<32x64xi32>
    %q2 = tile.addptr %q, %c : tensor<32x64x!tile.ptr<f32>>, tensor<32x64xi32>
    %ck = tile.constant 64 : tensor<1x64xi32>
    %kc2 = tile.addi %kc, %ck : tensor<1x64xi32>
    scf.yield %a2, %p2, %kc2, %q2 : tensor<32x64xf32>, tensor<32x64x!tile.ptr<f32>>, tensor<1x64xi32>, tensor<32x64x!tile.ptr<f32>>
  }
  func.return
}

// CHECK-LABEL: func.func @an_index_from_memory_stays_an_offset
// CHECK: %[[I:.*]] = tile.load_block %i
// CHECK: tile.load %x[%[[I]]] : !tile.ptr<f32>[tensor<64xi32>]
func.func @an_index_from_memory_stays_an_offset(%x: !tile.ptr<f32>, %i: !tile.ptr<i32>) {
  %r = tile.iota 0 to 64
  %k = tile.load %i[%r] : !tile.ptr<i32>[tensor<64xi32>]
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<64x!tile.ptr<f32>>
  %p = tile.addptr %xs, %k : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %v = tile.load %p : tensor<64x!tile.ptr<f32>>
  tile.store %x[%r], %v : !tile.ptr<f32>[tensor<64xi32>]
  func.return
}

// CHECK-LABEL: func.func @both_ends_are_checked
// CHECK: tile.load_block %x at (%b : i32) strides (%{{.*}} : i32) shape (%n : i32) checks [both]
func.func @both_ends_are_checked(%x: !tile.ptr<f32>, %b: i32, %n: i32) {
  %r = tile.iota 0 to 64
  %bs = tile.splat %b : i32 to tensor<64xi32>
  %k = tile.addi %bs, %r : tensor<64xi32>
  %ns = tile.splat %n : i32 to tensor<64xi32>
  %zs = tile.constant 0 : tensor<64xi32>
  %up = tile.gts %ns, %k : tensor<64xi32>
  %low = tile.ges %k, %zs : tensor<64xi32>
  %m = tile.andi %up, %low : tensor<64xi1>
  %v = tile.load %x[%k] mask %m : !tile.ptr<f32>[tensor<64xi32>]
  tile.store %x[%k], %v mask %m : !tile.ptr<f32>[tensor<64xi32>]
  func.return
}
