--  Numbers in fewer bits than their types have, and arrays by enumerations whose numbers have gaps.
with Ada.Text_IO; use Ada.Text_IO;
procedure Packed is
   subtype Small is Integer range 0 .. 7;
   type Smalls is array (1 .. 4) of Small;
   pragma Pack (Smalls);
   type Mixed is record
      A : Small;
      B : Integer range -4 .. 3;
      C : Natural range 0 .. 200;
      D : Character;
   end record;
   pragma Pack (Mixed);
   type Op is (Nop, Load, Store);
   for Op use (1, 16, 77);
   type By_Op is array (Op) of Integer;
   type By_Some is array (Op range Load .. Store) of Integer;
   type Biased is range -200 .. -100;
   for Biased'Size use 8;
   procedure Stop_Here (I : Integer) is
   begin
      Put_Line (Integer'Image (I));
   end Stop_Here;
   V : Smalls := (5, 6, 7, 1);
   X : Mixed := (5, -3, 200, 'x');
   Y : By_Op := (10, 20, 30);
   Z : By_Some := (21, 31);
   S : Small := 6;
   Nn : Biased := -150;
begin
   Stop_Here (3);
   Put_Line (Integer'Image (V (1)) & Integer'Image (X.A) & Integer'Image (Y (Store)) & Integer'Image (Z (Load))
             & Integer'Image (S) & Biased'Image (Nn));
end Packed;
