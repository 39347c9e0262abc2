--  Arrays, records and numbers of every kind that Ada has; stops in Stop_Here.
with Ada.Text_IO;

procedure Arrays is
   type Color is (Red, Green, Blue);
   type By_Color is array (Color) of Integer;
   type Mat is array (1 .. 2, 1 .. 3) of Integer;
   type Bits is array (0 .. 9) of Boolean;
   pragma Pack (Bits);
   type Nibble is mod 16;
   type Nibbles is array (1 .. 5) of Nibble;
   pragma Pack (Nibbles);
   type Fixed is delta 0.0078125 range -100.0 .. 100.0;
   type Money is delta 0.01 digits 9;
   type Tenths is delta 0.1 range 0.0 .. 10.0;
   for Tenths'Small use 0.1;
   type Kind is (A, B, C);
   type Rec (K : Kind := A) is record
      Id : Integer;
      case K is
         when A => I : Integer;
         when B => F : Long_Float;
         when C => Ch : Character; Ok : Boolean;
      end case;
   end record;
   type Small is range -5 .. 20;

   function Four return Integer is (Ada.Text_IO.Positive_Count'Pos (4));

   procedure Stop_Here is
   begin
      Ada.Text_IO.Put_Line ("here");
   end Stop_Here;

   N   : Integer := Four;
   Dyn : array (1 .. N) of Integer := (others => 4);
   Mx  : Mat := ((1, 2, 3), (4, 5, 6));
   Bc  : By_Color := (10, 20, 30);
   Pb  : Bits := (True, False, False, True, True, False, True, False, True, True);
   Nb  : Nibbles := (1, 2, 3, 4, 15);
   Fx  : Fixed := 3.25;
   Mo  : Money := -12.34;
   Th  : Tenths := 2.5;
   R1  : Rec := (A, 1, 42);
   R2  : Rec := (C, 2, 'q', True);
   R3  : Rec (B) := (B, 3, 2.5);
   S   : String := "hello";
   Neg : array (-2 .. 1) of Long_Float := (1.0, 2.0, 3.0, 4.0);
   Sm  : Small := -3;
   Col : Color := Blue;
   Yes : Boolean := True;
   Lf  : Long_Long_Float := 1.5;

   procedure Show (X : in String; M : Mat; R : Rec) is
   begin
      Stop_Here;
      Ada.Text_IO.Put_Line (X & Integer'Image (M (2, 1)) & Integer'Image (R.Id));
   end Show;
begin
   Show (S, Mx, R2);
   Ada.Text_IO.Put_Line (Integer'Image (Dyn (2)) & Boolean'Image (Pb (3)) & Fixed'Image (Fx) & Money'Image (Mo)
     & Tenths'Image (Th) & Integer'Image (Bc (Green)) & Long_Float'Image (Neg (-1)) & Small'Image (Sm)
     & Color'Image (Col) & Boolean'Image (Yes) & Nibble'Image (Nb (5)) & Long_Long_Float'Image (Lf)
     & Long_Float'Image (R3.F) & Integer'Image (R1.I));
end Arrays;
