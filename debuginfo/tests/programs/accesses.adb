--  Access values of every form, and local arrays whose bounds are known only at run time; stops in Stop_Here.
with Ada.Command_Line;

procedure Accesses is
   type Ints is array (Integer range <>) of Integer;
   type Fat is access Ints;
   type Thin is access all Ints;
   for Thin'Size use Standard'Address_Size;
   type Text is access String;
   type Five is array (1 .. 5) of Integer;
   type To_Five is access Five;
   type Node;
   type Link is access Node;
   type Node is record
      Value : Integer;
      Next  : Link;
   end record;

   F       : Fat := new Ints'(3 => 30, 4 => 40, 5 => 50);
   T       : Thin := new Ints'(1 => 7, 2 => 8, 3 => 9);
   S       : Text := new String'("hello");
   P       : To_Five := new Five'(1, 2, 3, 4, 5);
   L       : Link := new Node'(1, new Node'(2, null));
   Nothing : Fat := null;
   Sum     : Integer := 0;

   procedure Stop_Here (N : Integer) is
   begin
      Sum := Sum + N;
   end Stop_Here;

   function Many (N : Integer) return Ints is
      All_Of_It : constant Ints (1 .. N) := (others => N);
   begin
      return All_Of_It;
   end Many;

   procedure Show (A : Ints; X : String) is
      Local   : Ints := Many (A'Length + 1);
      Words   : String := X & "!";
      Renamed : Ints renames A;
   begin
      Stop_Here (Local (1));
      Sum := Sum + Words'Length + Renamed'First;
   end Show;
begin
   Show (F.all, S.all);
   if Nothing /= null or T (1) + P (2) + L.Next.Value + Sum = Ada.Command_Line.Argument_Count then
      Stop_Here (2);
   end if;
end Accesses;
