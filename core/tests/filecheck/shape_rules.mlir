// RUN: tilefw opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: func.func @what_undoes_each_other_goes
func.func @what_undoes_each_other_goes(%p: !tile.ptr<f32>, %x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %o: tensor<4x8xi32>) {
  // CHECK-NEXT: tile.store %p[%o], %x
  // CHECK-NEXT: tile.store %p[%o], %y
  // CHECK-NEXT: tile.store %p[%o], %x
  // CHECK-NEXT: tile.store %p[%o], %x
  // CHECK-NEXT: tile.store %p[%o], %x
  %j = tile.join %x, %y : tensor<4x8xf32>
  %a, %b = tile.split %j : tensor<4x8x2xf32>
  tile.store %p[%o], %a : !tile.ptr<f32>[tensor<4x8xi32>]
  tile.store %p[%o], %b : !tile.ptr<f32>[tensor<4x8xi32>]
  %f = tile.flip %x axis 1 : tensor<4x8xf32>
  %g = tile.flip %f axis 1 : tensor<4x8xf32>
  tile.store %p[%o], %g : !tile.ptr<f32>[tensor<4x8xi32>]
  %r = tile.reshape %x : tensor<4x8xf32> to tensor<2x16xf32>
  %s = tile.expand_dims %r axis 0 : tensor<2x16xf32>
  %t = tile.reshape %s : tensor<1x2x16xf32> to tensor<4x8xf32>
  tile.store %p[%o], %t : !tile.ptr<f32>[tensor<4x8xi32>]
  %u = tile.trans %x [1, 0] : tensor<4x8xf32>
  %v = tile.trans %u [1, 0] : tensor<8x4xf32>
  tile.store %p[%o], %v : !tile.ptr<f32>[tensor<4x8xi32>]
  func.return
}

// CHECK-LABEL: func.func @permutations_are_one
func.func @permutations_are_one(%p: !tile.ptr<f32>, %x: tensor<2x4x8xf32>, %o: tensor<4x8x2xi32>) {
  // CHECK-NEXT: %[[T:.*]] = tile.trans %x [1, 2, 0] : tensor<2x4x8xf32>
  // CHECK-NEXT: tile.store %p[%o], %[[T]]
  %a = tile.trans %x [2, 0, 1] : tensor<2x4x8xf32>
  %b = tile.trans %a [2, 0, 1] : tensor<8x2x4xf32>
  tile.store %p[%o], %b : !tile.ptr<f32>[tensor<4x8x2xi32>]
  func.return
}

// CHECK-LABEL: func.func @joins_of_one_splat
func.func @joins_of_one_splat(%p: !tile.ptr<f32>, %x: f32, %o: tensor<4xi32>, %q: tensor<2xi32>) {
  // CHECK-NEXT: %[[S:.*]] = tile.splat %x : f32 to tensor<4xf32>
  // CHECK-NEXT: tile.store %p[%o], %[[S]]
  // CHECK-NEXT: %[[H:.*]] = tile.splat %x : f32 to tensor<2xf32>
  // CHECK-NEXT: tile.store %p[%q], %[[H]]
  %s = tile.splat %x : f32 to tensor<2xf32>
  %j = tile.join %s, %s : tensor<2xf32>
  %r = tile.reshape %j : tensor<2x2xf32> to tensor<4xf32>
  %f = tile.flip %r axis 0 : tensor<4xf32>
  tile.store %p[%o], %f : !tile.ptr<f32>[tensor<4xi32>]
  %a, %b = tile.split %j : tensor<2x2xf32>
  tile.store %p[%q], %b : !tile.ptr<f32>[tensor<2xi32>]
  func.return
}

// CHECK-LABEL: func.func @a_sum_flows_into_the_dot
func.func @a_sum_flows_into_the_dot(%p: !tile.ptr<f32>, %a: tensor<16x16xf16>, %c: tensor<16x16xf32>, %o: tensor<16x16xi32>) {
  // CHECK-NEXT: %[[D:.*]] = tile.dot %a, %a, %c : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>
  // CHECK-NEXT: tile.store %p[%o], %[[D]]
  %z = tile.constant 0.0 : tensor<16x16xf32>
  %d = tile.dot %a, %a, %z : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>
  %s = tile.addf %c, %d : tensor<16x16xf32>
  tile.store %p[%o], %s : !tile.ptr<f32>[tensor<16x16xi32>]
  func.return
}

// CHECK-LABEL: func.func @a_product_of_two_uses_stays
func.func @a_product_of_two_uses_stays(%p: !tile.ptr<f32>, %a: tensor<16x16xf16>, %c: tensor<16x16xf32>, %o: tensor<16x16xi32>) {
  // CHECK: tile.dot %a, %a, %{{.*}} :
  // CHECK: tile.addf
  %z = tile.constant 0.0 : tensor<16x16xf32>
  %d = tile.dot %a, %a, %z : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>
  %s = tile.addf %c, %d : tensor<16x16xf32>
  tile.store %p[%o], %s : !tile.ptr<f32>[tensor<16x16xi32>]
  tile.store %p[%o], %d : !tile.ptr<f32>[tensor<16x16xi32>]
  func.return
}

// CHECK-LABEL: func.func @equal_elements_reduce_to_themselves
func.func @equal_elements_reduce_to_themselves(%p: !tile.ptr<f32>, %x: f32, %y: tensor<1x8xf32>, %o: tensor<8xi32>) {
  // CHECK-NEXT: %[[S:.*]] = tile.splat %x
  // CHECK-NEXT: tile.store %p, %x
  // CHECK-NEXT: %[[R:.*]] = tile.reshape %y : tensor<1x8xf32> to tensor<8xf32>
  // CHECK-NEXT: tile.store %p[%o], %[[R]]
  // CHECK-NEXT: tile.reduce %[[S]] axis 0 : tensor<8xf32>
  // CHECK:        tile.addf
  %s = tile.splat %x : f32 to tensor<8xf32>
  %m = tile.reduce %s axis 0 : tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.maxf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.store %p, %m : !tile.ptr<f32>
  %n = tile.reduce %y axis 0 : tensor<1x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.store %p[%o], %n : !tile.ptr<f32>[tensor<8xi32>]
  %sum = tile.reduce %s axis 0 : tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.store %p, %sum : !tile.ptr<f32>
  func.return
}

// CHECK-LABEL: func.func @a_function_folds_inside
func.func @a_function_folds_inside(%p: !tile.ptr<i32>, %x: tensor<8xi32>) {
  // CHECK:      ^bb0(%a: i32, %b: i32):
  // CHECK-NEXT:   %[[C:.*]] = tile.addi %a, %b : i32
  // CHECK-NEXT:   tile.reduce_return %[[C]] : i32
  %s = tile.reduce %x axis 0 : tensor<8xi32> {
  ^bb0(%a: i32, %b: i32):
    %one = tile.constant 1 : i32
    %m = tile.muli %b, %one : i32
    %c = tile.addi %a, %m : i32
    %dead = tile.muli %c, %c : i32
    tile.reduce_return %c : i32
  }
  tile.store %p, %s : !tile.ptr<i32>
  func.return
}
