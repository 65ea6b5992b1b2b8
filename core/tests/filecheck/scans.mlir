// RUN: tilefw opt %s -p default | filecheck %s

// Equal scans are one and leave the loop; another direction stays another scan.
// CHECK-LABEL: func.func @equal_scans_are_one
// CHECK:      %[[S:.*]] = tile.scan %x axis 1 : tensor<4x8xf32> {
// CHECK-NEXT: ^bb0(%a: f32, %b: f32):
// CHECK-NEXT:   %[[C:.*]] = tile.addf %a, %b : f32
// CHECK-NEXT:   tile.scan_return %[[C]] : f32
// CHECK:      %[[R:.*]] = tile.scan %x axis 1 reverse : tensor<4x8xf32> {
// CHECK-NOT:  tile.scan %x
// CHECK:      tile.addf %[[S]], %[[S]]
// CHECK:      scf.for
// CHECK-NOT:  tile.scan
// CHECK:      func.return
func.func @equal_scans_are_one(%p: !tile.ptr<f32>, %x: tensor<4x8xf32>, %o: tensor<4x8xi32>, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %start = tile.constant 0.0 : tensor<4x8xf32>
  %end = scf.for %i = %zero to %n step %one iter_args(%sum = %start) -> (tensor<4x8xf32>) : i32 {
    %s = tile.scan %x axis 1 : tensor<4x8xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = tile.addf %a, %b : f32
      tile.scan_return %c : f32
    }
    %t = tile.scan %x axis 1 : tensor<4x8xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = tile.addf %a, %b : f32
      tile.scan_return %c : f32
    }
    %r = tile.scan %x axis 1 reverse : tensor<4x8xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = tile.addf %a, %b : f32
      tile.scan_return %c : f32
    }
    %both = tile.addf %s, %t : tensor<4x8xf32>
    %scaled = tile.mulf %both, %r : tensor<4x8xf32>
    %next = tile.addf %sum, %scaled : tensor<4x8xf32>
    scf.yield %next : tensor<4x8xf32>
  }
  tile.store %p[%o], %end : !tile.ptr<f32>[tensor<4x8xi32>]
  func.return
}

// An axis of one element is its own scan, and so are equal elements under a function that gives x for x and x; nobody reads the last.
// CHECK-LABEL: func.func @nothing_comes_before
// CHECK-NEXT:   %[[S:.*]] = tile.splat %x
// CHECK-NEXT:   tile.store %p[%o], %[[S]]
// CHECK-NEXT:   tile.store %q[%o], %y
// CHECK-NEXT:   func.return
func.func @nothing_comes_before(
  %p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %x: f32, %y: tensor<1x8xf32>, %z: tensor<1x8xf32>, %o: tensor<1x8xi32>
) {
  %s = tile.splat %x : f32 to tensor<1x8xf32>
  %m = tile.scan %s axis 1 : tensor<1x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.maxf %a, %b : f32
    tile.scan_return %c : f32
  }
  tile.store %p[%o], %m : !tile.ptr<f32>[tensor<1x8xi32>]
  %n = tile.scan %y axis 0 reverse : tensor<1x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.scan_return %c : f32
  }
  tile.store %q[%o], %n : !tile.ptr<f32>[tensor<1x8xi32>]
  %dead = tile.scan %z axis 1 : tensor<1x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.scan_return %c : f32
  }
  func.return
}
