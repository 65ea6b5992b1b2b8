// RUN: tilefw opt %s -p canonicalize | filecheck %s

// The column at 1 of a tile whose column 2 was replaced is that of the tile before; that of column 2 is what was put there, as a sum
// with zeros has it: -0 is +0.
// CHECK-LABEL: func.func @columns_are_seen_through_selects
// CHECK:      %[[FIRST:.*]] = tile.select %{{.*}}, %x, %{{.*}} : tensor<4x8xf32>
// CHECK-NEXT: tile.reduce %[[FIRST]] axis 1
// CHECK:      %[[ZERO:.*]] = tile.constant 0.0 : tensor<4xf32>
// CHECK-NEXT: %[[SECOND:.*]] = tile.addf %v, %[[ZERO]] : tensor<4xf32>
// CHECK-NOT:  tile.reduce
// CHECK:      tile.addf %{{.*}}, %[[SECOND]] : tensor<4xf32>
func.func @columns_are_seen_through_selects(%x: tensor<4x8xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
  %i = tile.iota 0 to 8
  %row = tile.expand_dims %i axis 0 : tensor<8xi32>
  %one = tile.constant 1 : tensor<1x8xi32>
  %two = tile.constant 2 : tensor<1x8xi32>
  %zeros = tile.constant 0.0 : tensor<4x8xf32>
  %at1 = tile.eqi %row, %one : tensor<1x8xi32>
  %at2 = tile.eqi %row, %two : tensor<1x8xi32>
  %is1 = tile.broadcast %at1 : tensor<1x8xi1> to tensor<4x8xi1>
  %is2 = tile.broadcast %at2 : tensor<1x8xi1> to tensor<4x8xi1>
  %column = tile.expand_dims %v axis 1 : tensor<4xf32>
  %wide = tile.broadcast %column : tensor<4x1xf32> to tensor<4x8xf32>
  %y = tile.select %is2, %wide, %x : tensor<4x8xf32>
  %m1 = tile.select %is1, %y, %zeros : tensor<4x8xf32>
  %s1 = tile.reduce %m1 axis 1 : tensor<4x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %m2 = tile.select %is2, %y, %zeros : tensor<4x8xf32>
  %s2 = tile.reduce %m2 axis 1 : tensor<4x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %s = tile.addf %s1, %s2 : tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// Where the column is replaced under a condition, the condition decides between the new one and the old tile's.
// CHECK-LABEL: func.func @a_column_replaced_under_a_condition
// CHECK-DAG:  %[[OLD:.*]] = tile.reduce %{{.*}} axis 1
// CHECK-DAG:  %[[IF:.*]] = tile.splat %p : i1 to tensor<4xi1>
// CHECK-DAG:  %[[NEW:.*]] = tile.addf %v, %{{.*}} : tensor<4xf32>
// CHECK:      tile.select %[[IF]], %[[NEW]], %{{.*}} : tensor<4xf32>
func.func @a_column_replaced_under_a_condition(%x: tensor<4x8xf32>, %v: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
  %i = tile.iota 0 to 8
  %row = tile.expand_dims %i axis 0 : tensor<8xi32>
  %two = tile.constant 2 : tensor<1x8xi32>
  %zeros = tile.constant 0.0 : tensor<4x8xf32>
  %at = tile.eqi %row, %two : tensor<1x8xi32>
  %is = tile.broadcast %at : tensor<1x8xi1> to tensor<4x8xi1>
  %if = tile.splat %p : i1 to tensor<1x8xi1>
  %both = tile.andi %at, %if : tensor<1x8xi1>
  %mask = tile.broadcast %both : tensor<1x8xi1> to tensor<4x8xi1>
  %column = tile.expand_dims %v axis 1 : tensor<4xf32>
  %wide = tile.broadcast %column : tensor<4x1xf32> to tensor<4x8xf32>
  %y = tile.select %mask, %wide, %x : tensor<4x8xf32>
  %m = tile.select %is, %y, %zeros : tensor<4x8xf32>
  %s = tile.reduce %m axis 1 : tensor<4x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  func.return %s : tensor<4xf32>
}

// Ones are not neutral in a sum, an axis of another name is not the one reduced, and a mask of two indices leaves more than one.
// CHECK-LABEL: func.func @all_others_stay_reductions
// CHECK-COUNT-3: tile.reduce
func.func @all_others_stay_reductions(%x: tensor<8x8xf32>, %v: tensor<8xf32>) -> tensor<8xf32> {
  %i = tile.iota 0 to 8
  %row = tile.expand_dims %i axis 0 : tensor<8xi32>
  %two = tile.constant 2 : tensor<1x8xi32>
  %zeros = tile.constant 0.0 : tensor<8x8xf32>
  %ones = tile.constant 1.0 : tensor<8x8xf32>
  %at = tile.eqi %row, %two : tensor<1x8xi32>
  %below = tile.lts %row, %two : tensor<1x8xi32>
  %is = tile.broadcast %at : tensor<1x8xi1> to tensor<8x8xi1>
  %are = tile.broadcast %below : tensor<1x8xi1> to tensor<8x8xi1>
  %column = tile.expand_dims %v axis 1 : tensor<8xf32>
  %wide = tile.broadcast %column : tensor<8x1xf32> to tensor<8x8xf32>
  %y = tile.select %is, %wide, %x : tensor<8x8xf32>
  %m1 = tile.select %is, %y, %ones : tensor<8x8xf32>
  %s1 = tile.reduce %m1 axis 1 : tensor<8x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %m2 = tile.select %is, %y, %zeros : tensor<8x8xf32>
  %s2 = tile.reduce %m2 axis 0 : tensor<8x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %m3 = tile.select %are, %y, %zeros : tensor<8x8xf32>
  %s3 = tile.reduce %m3 axis 1 : tensor<8x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = tile.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %s12 = tile.addf %s1, %s2 : tensor<8xf32>
  %s = tile.addf %s12, %s3 : tensor<8xf32>
  func.return %s : tensor<8xf32>
}
