// RUN: tilefw opt %s -p default | filecheck %s

// One reduction is made of two equal ones, and leaves the loop; another function stays another reduction; the loop's wish stays.
// CHECK-LABEL: func.func @equal_reductions_are_one
// CHECK:      %[[S:.*]] = tile.reduce %x axis 1 : tensor<4x8xf32> {
// CHECK-NEXT: ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:   %{{.*}} = tile.addf %a, %b : f32
// CHECK:      %[[M:.*]] = tile.reduce %x axis 1 : tensor<4x8xf32> {
// CHECK-NEXT: ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:   %{{.*}} = tile.maxf %a, %b : f32
// CHECK-NOT:  tile.reduce %x
// CHECK:      tile.addf %[[S]], %[[S]]
// CHECK:      scf.for
// CHECK-NOT:  tile.reduce
// CHECK:      } {tile.num_stages = 3 : i64}
func.func @equal_reductions_are_one(%p: !tile.ptr<f32>, %x: tensor<4x8xf32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %four = tile.iota 0 to 4
  %start = tile.constant 0.0 : tensor<4xf32>
  %end = scf.for %i = %zero to %n step %one iter_args(%sum = %start) -> (tensor<4xf32>) : i32 {
    %s = tile.reduce %x axis 1 : tensor<4x8xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = tile.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %t = tile.reduce %x axis 1 : tensor<4x8xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = tile.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %m = tile.reduce %x axis 1 : tensor<4x8xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = tile.maxf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %both = tile.addf %s, %t : tensor<4xf32>
    %scaled = tile.mulf %both, %m : tensor<4xf32>
    %next = tile.addf %sum, %scaled : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  } {tile.num_stages = 3 : i64}
  tile.store %p[%four], %end : !tile.ptr<f32>[tensor<4xi32>]
  func.return
}

// A loop whose carried pointers become scalars, and one of whose carried values goes, is made anew: its wish stays.
// CHECK-LABEL: func.func @a_rebuilt_loop_keeps_its_wish
// CHECK:      scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<16xf32>, !tile.ptr<f32>)
// CHECK:        tile.load_block
// CHECK:      } {tile.num_stages = 4 : i64}
func.func @a_rebuilt_loop_keeps_its_wish(%p: !tile.ptr<f32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %i = tile.iota 0 to 16
  %step = tile.constant 16 : tensor<16xi32>
  %start = tile.constant 0.0 : tensor<16xf32>
  %ps = tile.splat %p : !tile.ptr<f32> to tensor<16x!tile.ptr<f32>>
  %first = tile.addptr %ps, %i : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %sum, %last, %unread = scf.for %k = %zero to %n step %one iter_args(%s = %start, %q = %first, %u = %one) -> (tensor<16xf32>, tensor<16x!tile.ptr<f32>>, i32) : i32 {
    %x = tile.load %q : tensor<16x!tile.ptr<f32>>
    %t = tile.addf %s, %x : tensor<16xf32>
    %r = tile.addptr %q, %step : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    %v = tile.muli %u, %k : i32
    scf.yield %t, %r, %v : tensor<16xf32>, tensor<16x!tile.ptr<f32>>, i32
  } {tile.num_stages = 4 : i64}
  tile.store %p[%i], %sum : !tile.ptr<f32>[tensor<16xi32>]
  func.return
}
